//! What Rust packs, the page's own module unpacks: `web/decode.js` run by node on random columns,
//! and on the cases that a picture must not lose.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use testkit::{TempDir, skip, web};
use viewer::view::pack;

type Change = (u32, Option<i64>);

#[test]
fn the_page_unpacks_what_was_packed() {
    let packed = columns();
    let mut block = Vec::new();
    let places: Vec<_> =
        packed.iter().map(|changes| pack(changes.iter().copied(), &mut block)).collect();
    let samples = 500;
    let asked = json!({ "block": block, "columns": places, "samples": samples });
    let answers = match decoded(&asked) {
        Ok(answers) => answers,
        Err(need) => return skip(need),
    };
    for (at, changes) in packed.iter().enumerate() {
        let exact = json!(changes);
        assert_eq!(numbers(&answers["changes"][at]), numbers(&exact), "column {at}");
        let dense = answers["dense"][at].as_array().unwrap();
        assert_eq!(dense.len(), samples);
        for (sample, value) in dense.iter().enumerate() {
            let last = changes.iter().rfind(|change| change.0 as usize <= sample);
            let expected = last.and_then(|change| change.1).map(|value| value as f64);
            assert_eq!(value.as_f64(), expected, "column {at}, sample {sample}");
        }
    }

    assert_eq!(answers["spike"], 1e9, "a spike of one sample of 100,000 is drawn");
    assert_eq!(answers["dip"], -1e9);
    assert_eq!(answers["drawn"], 1000, "two values for each of 500 buckets");
    assert_eq!(answers["zoomed"], json!([12, 1_000_000_000]), "zoomed in, all samples");

    let parted = json!([[0, 1, 1.5, 2, 3], [5, 6, null, 7, 8]]);
    assert_eq!(answers["pause"], parted, "a line is parted where nothing was recorded");

    let slow = answers["slow"].as_array().unwrap();
    let near = |at: usize, rate: f64| (slow[at].as_f64().unwrap() - rate).abs() < 1e-6;
    assert!(slow[0].is_null(), "nothing grows before the first sample");
    assert!((1..=10).all(|at| near(at, 10.0)), "spread over the second: {slow:?}");
    assert!((11..=19).all(|at| near(at, 0.0)), "{slow:?}");
    assert!((20..=30).all(|at| near(at, 10.0 / 1.1)), "not over more than that: {slow:?}");

    let kept = answers["kept"].as_u64().unwrap();
    assert!((36_000..=45_000).contains(&kept), "{kept}");
    assert!(answers["kept_changes"].as_u64().unwrap() <= kept / 2000 + 2);
    assert_eq!(answers["newest"], 9999.9);
    let first = answers["first"].as_u64().unwrap();
    let last_change = (first - 500) / 2000 * 2000;
    assert_eq!(answers["first_value"].as_f64(), Some(last_change as f64));
}

/// Columns that do not change, change, jump by more than 2^53 down and up, and go away and come
/// back.
fn columns() -> Vec<Vec<Change>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut all: Vec<Vec<Change>> = vec![
        Vec::new(),
        vec![(3, Some(0))],
        vec![(0, Some(1 << 62)), (1, Some(0)), (2, Some(1 << 60)), (9, None)],
    ];
    for _ in 0..50 {
        let mut column = Vec::new();
        let mut sample = random(20) as u32;
        while sample < 500 {
            let size = 1 << random(50);
            let value = (random(8) > 0).then(|| random(size) as i64 - size as i64 / 3);
            column.push((sample, value));
            sample += 1 + if random(2) == 0 { 0 } else { random(40) as u32 };
        }
        all.push(column);
    }
    all
}

/// Both sides as numbers of one kind: JSON in Rust distinguishes 1 from 1.0.
fn numbers(changes: &Value) -> Vec<(u64, Option<f64>)> {
    let changes = changes.as_array().unwrap().iter();
    changes.map(|change| (change[0].as_u64().unwrap(), change[1].as_f64())).collect()
}

/// Runs the module in node, which takes it for one only beside a package that says so.
fn decoded(asked: &Value) -> Result<Value, String> {
    let mut node = web::node()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = TempDir::new();
    for file in ["web/dom.js", "web/decode.js", "tests/decode.mjs"] {
        let from = here.join(file);
        std::fs::copy(&from, dir.join(from.file_name().unwrap())).unwrap();
    }
    std::fs::write(dir.join("package.json"), "{\"type\":\"module\"}").unwrap();
    node.arg(dir.join("decode.mjs"));
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = node.stdin.take().unwrap();
    stdin.write_all(asked.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "node failed");
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}
