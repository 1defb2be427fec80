//! `boost receipt` on this machine: it says what is there, as text and as JSON, to root and to an
//! ordinary user.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use support::{as_ordinary_user, run, terrace};

#[test]
fn every_cache_of_this_machine_has_a_verdict() {
    let value: serde_json::Value =
        serde_json::from_str(&terrace("boost receipt --json").done()).unwrap();
    assert_eq!(value["schema"], "terrace.boost_receipt/1");
    for cache in value["caches"].as_array().unwrap() {
        let verdict = cache["verdict"].as_str().unwrap();
        assert!(["worth_it", "not_worth_it", "unproven"].contains(&verdict), "{cache}");
        assert!(verdict != "worth_it" || cache["spared_s"].is_number(), "{cache}");
    }
    let page = terrace("boost receipt").done();
    let is_empty = value["caches"].as_array().unwrap().is_empty();
    assert_eq!(page.contains("No cache was found"), is_empty, "{page}");
}

#[test]
fn without_root_it_says_what_root_would_see() {
    let Some(command) = as_ordinary_user("boost receipt") else {
        return testkit::skip("root and setpriv");
    };
    let page = run(command).done();
    assert!(page.contains("`dmsetup` answers only root"), "{page}");
}
