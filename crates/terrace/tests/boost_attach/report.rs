//! `terrace boost report`: sums that are those of the service, and that outlive it. A history that
//! is damaged costs nothing but itself.

use super::*;

impl Scene {
    fn report(&self) -> Value {
        let text = terrace(&format!("boost report {} --json", self.name)).done();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "terrace.boost_report/1");
        value["caches"][0].clone()
    }

    fn history(&self) -> PathBuf {
        self.directory.join("state").join(&self.name).join("history")
    }
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {value}"))
}

#[test]
fn a_report_has_the_sums_of_the_service_and_outlives_it() {
    let Some(scene) = Scene::new("report") else { return };
    terrace(&format!("boost report {}", scene.name)).refused(2, "is attached");
    let blocks = 1000;
    // Else next to nothing would be written to the medium.
    fs::write(scene.volume.path(), fill::noise(5, blocks * BLOCK as u64)).unwrap();
    scene.attach(&scene.medium()).done();
    let device = scene.device();
    for _ in 0..3 {
        read_blocks(&device, blocks);
    }
    let (report, status) = (scene.report(), scene.status());
    for field in ["reads", "hits", "hit_bytes", "read_bytes"] {
        for sum in ["since_attach", "week", "today"] {
            assert_eq!(report[sum][field], status[field], "{sum} {field}");
        }
    }
    let hits = number(&report, "/week/hits");
    assert!(hits >= blocks, "{report}");
    // All are apart from each other.
    assert!(number(&report, "/week/hit_seeks") > hits * 9 / 10, "{report}");
    let timed = [number(&report, "/week/timed_hits"), number(&report, "/week/timed_misses")];
    assert!(timed[0] > hits * 9 / 10 && timed[0] <= hits, "{report}");
    let misses = number(&report, "/week/reads") - hits;
    assert!(timed[1] > misses / 2 && timed[1] <= misses, "{report}");
    let saved = &report["week_saved"];
    let mean = |of: &str| saved[of].as_f64().unwrap();
    let expected = hits as f64 * (mean("disk_ns") - mean("flash_ns"));
    assert!((mean("saved_ns") - expected).abs() <= expected.abs() / 1e6 + 1.0, "{saved}");
    let page = terrace(&format!("boost report {}", scene.name)).done();
    for words in ["in the last 7 days", "measured in the service", "concluded", "worn: "] {
        assert!(page.contains(words), "{page}");
    }
    scene.detach().done();

    // The next attach begins a new sum, and the week goes on.
    scene.attach(&scene.medium()).done();
    let next = scene.report();
    // What was written comes off the budget of the day, of which a minute earns little. A detach
    // has written all that was admitted.
    let status = scene.status();
    let used = number(&next, "/budget_bytes_per_day") - number(&status, "/budget_bytes");
    assert!(used > blocks * BLOCK as u64 / 2, "{status}");
    assert!(number(&next, "/week/hits") >= hits, "{next}");
    assert!(number(&next, "/since_attach/hits") < hits, "{next}");
    assert!(number(&next, "/week/medium_bytes") >= number(&report, "/week/medium_bytes"));
    scene.kill();
    let killed = scene.report();
    assert!(number(&killed, "/week/hits") >= hits, "{killed}");
    assert_eq!(killed["attached_unix_s"], next["attached_unix_s"]);
    scene.detach().done();
}

#[test]
fn a_history_that_is_damaged_begins_anew_and_a_newer_one_is_left() {
    let Some(scene) = Scene::new("history") else { return };
    scene.attach(&scene.medium()).done();
    scene.detach().done();
    let kept = fs::read_to_string(scene.history()).unwrap();
    assert!(kept.contains("terrace.boost_history/1"), "{kept}");
    let newer = kept.replace("history/1", "history/7");
    for text in ["", "{\"schema\":", "\0\0\0", "[".repeat(100_000).as_str(), newer.as_str()] {
        fs::write(scene.history(), text).unwrap();
        scene.attach(&scene.medium()).done();
        read_blocks(&scene.device(), 50);
        assert!(number(&scene.report(), "/week/reads") >= 50);
        scene.detach().done();
        let now = fs::read_to_string(scene.history()).unwrap();
        assert_eq!(now == newer, text == newer, "{now}");
    }
    // Nothing half-written is left.
    let names = fs::read_dir(scene.history().parent().unwrap()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["history", "journal", "key"]);
}
