//! The page of `terrace survey --html`: made from a real survey, redacted, whole, and drawn
//! by a real browser where there is one. How it looks is for eyes.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{run, schema_complaint, terrace};
use testkit::TempDir;

const SCHEMA: &str = include_str!("../../../docs/survey.schema.json");
const RECORDED: &str = include_str!("fixtures/survey.json");
const MOST_BYTES: usize = 1 << 20;

/// A name that is markup, closes what is open, and asks for a picture.
const HOSTILE: &str = "</script><img src=https://example.org/x onerror=alert(1)>\"'&  vd<b>";

/// The JSON in a page.
fn embedded(page: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"survey\">";
    let text = page.split_once(begin).unwrap().1;
    serde_json::from_str(text.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_survey_is_also_a_page_without_names() {
    let directory = TempDir::new();
    let place = directory.path().join("secret-of-alice");
    fs::create_dir(&place).unwrap();
    let file = directory.path().join("page.html");
    let (place, file) = (place.display(), file.display());
    let text = terrace(&format!("survey --quick --json --path {place} --html {file}")).done();
    let page = fs::read_to_string(file.to_string()).unwrap();
    assert!(page.len() <= MOST_BYTES, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'") && !page.contains("secret-of-alice"));
    let (report, mut shown): (Value, Value) =
        (serde_json::from_str(&text).unwrap(), embedded(&page));
    assert_eq!(schema_complaint(SCHEMA, &shown), None);
    assert_eq!(shown["machine"]["host"], Value::Null);
    for curves in ["copies", "latencies", "caches", "faults"] {
        assert_eq!(shown["curves"][curves], report["curves"][curves]);
    }
    // The first that are measured: there is time for them also on a busy machine.
    let touches = &shown["curves"]["faults"][0]["bars"][0]["count"];
    assert!(touches.as_u64() > Some(0), "{touches}");
    // Names may have stand-ins; a figure is the same in both.
    for (at, tier) in report["tiers"].as_array().unwrap().iter().enumerate() {
        for text in ["name", "method", "reason"] {
            shown["tiers"][at][text] = tier[text].clone();
        }
    }
    assert_eq!(shown["tiers"], report["tiers"]);
}

#[test]
fn where_a_page_cannot_go_is_said_before_anything_is_measured() {
    terrace("survey --html -").refused(2, "the page goes to a file");
    terrace("survey --html /dev/null").refused(2, "/dev/null");
    terrace("survey --no-redact").refused(2, "--html");
}

/// What the browser made of a page, as text; `None` where there is no browser.
fn drawn(page: &str, directory: &Path) -> Option<String> {
    if !Path::new("/usr/bin/chromium").exists() {
        testkit::skip("chromium");
        return None;
    }
    let file = directory.join("page.html");
    fs::write(&file, page).unwrap();
    let mut browser = Command::new("/usr/bin/chromium");
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--window-size=1200,900", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", directory.join("user").display()))
        .arg(format!("file://{}", file.display()))
        .env("HOME", directory);
    let ran = run(browser);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some(ran.out)
}

#[test]
fn a_browser_draws_every_level_and_takes_no_name_for_markup() {
    let directory = TempDir::new();
    let mut survey: Value = serde_json::from_str(RECORDED).unwrap();
    let old = survey["tiers"][9]["name"].clone();
    survey["tiers"][9]["name"] = HOSTILE.into();
    for finding in survey["findings"].as_array_mut().unwrap() {
        if finding["tier"] == old {
            finding["tier"] = HOSTILE.into();
            finding["claim"] = HOSTILE.into();
        }
    }
    let page = viewer::survey_page(survey.to_string());
    assert_eq!(embedded(&page), survey);
    let Some(drawn) = drawn(&page, directory.path()) else {
        return;
    };
    // All levels but the swap, which was not seen and has no size; that one is named.
    let treads = drawn.matches("class=\"terrace-tread").count();
    assert_eq!(treads, survey["tiers"].as_array().unwrap().len() - 1);
    assert!(drawn.contains("Not drawn: swap (no swap area is on)."));
    let from_main = drawn.split_once("<main>").unwrap().1;
    let main = from_main.split_once("</main>").unwrap().0;
    assert!(!main.contains("<img") && !main.contains("<b>\"") && main.contains("&lt;img src="));
    for finding in 1..=survey["findings"].as_array().unwrap().len() {
        assert!(main.contains(&format!("href=\"#finding-{finding}\"")));
        assert!(main.contains(&format!("id=\"finding-{finding}\"")));
    }
}
