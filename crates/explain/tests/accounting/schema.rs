//! The JSON of an explanation against `docs/explain.schema.json`, in the few words of JSON
//! Schema that the file uses; a word that is not known here fails the test, so the schema
//! cannot demand what nobody checks.

use super::builder::{command, delay, row};
use model::explanation::{
    AccountedTime, Actor, ActorRole, Cause, ClearedCause, Contradiction, DiskState, DiskVerdict,
    EvictedMemory, ExpectedGain, Explanation, FigureUse, FileUse, Interval, ProcessUse, Remedy,
    SettingChange,
};
use model::{Evidence, Finding, Grade};
use serde_json::{Map, Value, json};

const SCHEMA: &str = include_str!("../../../../docs/explain.schema.json");

/// What the schema says against `value`; `None` when it is valid.
pub fn complaint(value: &Value) -> Option<String> {
    thread_local! {
        static ROOT: Value = serde_json::from_str(SCHEMA).unwrap();
    }
    ROOT.with(|root| check(root, root.as_object().unwrap(), value, "$").err())
}

fn check(root: &Value, rules: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    for (word, rule) in rules {
        let holds = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => is_of(rule, value),
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
            "minLength" => {
                let length = value.as_str().map(|text| text.chars().count() as u64);
                length.is_none_or(|length| length >= rule.as_u64().unwrap())
            }
            "minItems" => {
                let items = value.as_array().map(|items| items.len() as u64);
                items.is_none_or(|items| items >= rule.as_u64().unwrap())
            }
            "pattern" => {
                assert_eq!(rule, "^[a-z][a-z0-9_]*$", "a pattern that is not known here");
                value.as_str().is_none_or(is_id)
            }
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let rules = root.pointer(pointer).and_then(Value::as_object);
                check(root, rules.expect("a definition"), value, at)?;
                true
            }
            "required" => {
                let mut names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let fields = value.as_object();
                fields.is_none_or(|fields| names.all(|name| fields.contains_key(name)))
            }
            "additionalProperties" => {
                assert_eq!(rule, &json!(false));
                let known = rules["properties"].as_object().unwrap();
                let fields = value.as_object();
                fields.is_none_or(|fields| fields.keys().all(|name| known.contains_key(name)))
            }
            "properties" => {
                for (name, rules) in rule.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        let at = format!("{at}.{name}");
                        check(root, rules.as_object().unwrap(), field, &at)?;
                    }
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    let at = format!("{at}[{index}]");
                    check(root, rule.as_object().unwrap(), item, &at)?;
                }
                true
            }
            other => panic!("{at}: the word `{other}` is not known here"),
        };
        if !holds {
            return Err(format!("{at}: {word} {rule} does not hold for {value}"));
        }
    }
    Ok(())
}

fn is_of(rule: &Value, value: &Value) -> bool {
    let one = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the type `{other}` is not known here"),
    };
    match rule {
        Value::Array(names) => names.iter().any(one),
        name => one(name),
    }
}

fn is_id(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn used() -> ProcessUse {
    ProcessUse {
        process: Some(0),
        pid: Some(812),
        name: "tar".to_owned(),
        label: "backup.service (pid 812, tar)".to_owned(),
        processes: 1,
        group: "/system.slice/backup.service".to_owned(),
        group_name: Some("backup.service".to_owned()),
        figure: "cpu".to_owned(),
        value: 7,
        unit: "ns".to_owned(),
        share: 0.5,
        share_low: None,
        share_high: None,
        grade: Grade::Measured,
    }
}

fn file() -> FileUse {
    FileUse {
        path: None,
        label: "inode 77 of vda (254:0)".to_owned(),
        device: "254:0".to_owned(),
        inode: 77,
        figure: "read".to_owned(),
        bytes: 4096,
        share: 1.0,
        process: None,
        pid: None,
        name: "cc1plus".to_owned(),
        grade: Grade::Inferred,
    }
}

/// One of everything that an explanation can hold.
fn full() -> Explanation {
    let mut task = row(1000, 300, 100, Some(delay(9, 707_184, Some(707_000))));
    task.user_ns = 1;
    let built = command(1000).row(task).closed("events.sched", "only root may see them");
    let mut explained = built.explained();
    let evidence = Evidence::new("pswpin", 0.0, "count", "/proc/vmstat").seen_in(["vmstat.pswpin"]);
    let claimed = Finding::new(Grade::Measured, "Waited 1 s for locks", [evidence.clone()]);
    let finding = Finding { id: "lock_contention".to_owned(), ..claimed };
    let span = Some(Interval { from_ns: 0, to_ns: 1 });
    let cause = Cause::new(Some(1), finding);
    let actors = vec![Actor { role: ActorRole::Victim, used: used() }];
    let who = vec!["tar (pid 812) waited".to_owned()];
    let on_processor_ns = Some(1);
    let lies = AccountedTime { slice: "sleep".to_owned(), part: "lock".to_owned(), ns: 1 };
    let cause = Cause { on_processor_ns, accounts_for: vec![lies], ..cause };
    explained.findings = vec![Cause { span, actors, who, files: vec![file()], ..cause }];
    explained.usage = vec![FigureUse {
        figure: "cpu".to_owned(),
        total: 9,
        unit: "ns".to_owned(),
        first: vec![used()],
        others: 2,
        groups: vec![used()],
    }];
    explained.cleared = vec![ClearedCause {
        id: "swapping".to_owned(),
        name: "swap".to_owned(),
        evidence,
        cost_ns: Some(7),
    }];
    explained.remedies = vec![Remedy {
        finding: "lock_contention".to_owned(),
        text: "Hold it for less. Risk: none.".to_owned(),
        gain: Some(ExpectedGain { low: 1.1, high: 2.0, model: "the sleep goes away".to_owned() }),
        is_to_be_tried: true,
        try_command: Some("terrace run --try -- CMD".to_owned()),
        restores: Some(EvictedMemory {
            pid: Some(12),
            group: None,
            command: "terrace warm restore --pid 12".to_owned(),
        }),
        change: Some(SettingChange {
            path: "/sys/x".to_owned(),
            from: "0".to_owned(),
            to: "1".to_owned(),
            words: "x to 1".to_owned(),
        }),
    }];
    explained.disk = Some(DiskVerdict {
        state: DiskState::NotInvolved,
        device: "vda".to_owned(),
        text: "Not the disk".to_owned(),
        evidence: vec![explained.cleared[0].evidence.clone()],
    });
    explained.doubts.push("the recording was cut".to_owned());
    explained.usual_doubts.push("12 % of the samples came late".to_owned());
    explained.contradictions.push(Contradiction {
        text: "a thread ran for 2 s, all processors for 1 s".to_owned(),
        believed: Some("the processors".to_owned()),
        remedy: Some("terrace run --trace sched -- CMD".to_owned()),
        lowered: vec!["cpu_bound".to_owned()],
    });
    explained
}

#[test]
fn an_explanation_is_valid_and_comes_back() {
    let explained = full();
    let lists = [explained.of_which.len(), explained.repairs.len(), explained.unseen.len()];
    assert!(!lists.contains(&0), "one of everything: {lists:?}");
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(complaint(&json), None);
    let back: Explanation = serde_json::from_value(json).unwrap();
    assert_eq!(back, explained);
}

/// What was written before numbers named their series is read as before.
#[test]
fn an_explanation_without_series_and_spans_is_read() {
    let mut json = serde_json::to_value(full()).unwrap();
    let finding = json["findings"][0].as_object_mut().unwrap();
    finding.remove("span");
    let number = finding["evidence"][0].as_object_mut().unwrap();
    number.remove("series");
    let back: Explanation = serde_json::from_value(json).unwrap();
    assert_eq!(back.findings[0].span, None);
    assert!(back.findings[0].finding.evidence[0].series.is_empty());
}

/// A field more, a field less, another type, another word: each is refused.
#[test]
fn the_schema_refuses_what_is_no_explanation() {
    type Break = fn(&mut Value);
    let breaks: [(&str, Break); 18] = [
        ("another schema", |v| v["schema"] = json!("terrace.explain/2")),
        ("no bars", |v| drop(v.as_object_mut().unwrap().remove("bars"))),
        ("a field more", |v| v["extra"] = json!(1)),
        ("a field more in a slice", |v| v["bars"]["wall"][0]["extra"] = json!(1)),
        ("an unknown slice", |v| v["bars"]["thread"][0]["name"] = json!("tea")),
        ("a time below 0", |v| v["wall_ns"] = json!(-1)),
        ("a part without evidence", |v| v["of_which"][0]["evidence"] = json!([])),
        ("a finding without a grade", |v| {
            drop(v["findings"][0].as_object_mut().unwrap().remove("grade"))
        }),
        ("half a span", |v| v["findings"][0]["span"] = json!({ "from_ns": 0 })),
        ("a series that is a number", |v| v["findings"][0]["evidence"][0]["series"] = json!([7])),
        ("a role of no kind", |v| v["findings"][0]["actors"][0]["role"] = json!("witness")),
        ("an actor without a share", |v| {
            drop(v["findings"][0]["actors"][0].as_object_mut().unwrap().remove("share"))
        }),
        ("a figure without users", |v| v["usage"][0]["first"] = json!([])),
        ("a gain without a model", |v| {
            drop(v["remedies"][0]["gain"].as_object_mut().unwrap().remove("model"))
        }),
        ("a remedy that makes slower", |v| v["remedies"][0]["gain"]["low"] = json!(0.5)),
        ("a disk in no known state", |v| v["disk"]["state"] = json!("tired")),
        ("a doubt that is a number", |v| v["doubts"][0] = json!(7)),
        ("a contradiction of nothing", |v| v["contradictions"][0]["text"] = json!("")),
    ];
    for (what, break_it) in breaks {
        let mut value = serde_json::to_value(full()).unwrap();
        break_it(&mut value);
        assert!(complaint(&value).is_some(), "{what} passed");
    }
}
