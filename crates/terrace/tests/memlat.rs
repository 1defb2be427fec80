//! `terrace measure memlat`: memory is slower than L1, each page size and order has its
//! column, and Ctrl-C keeps what there is.

mod support;

use support::{assert_interrupted, interrupted, probe_csv, probe_json, terrace};

#[test]
fn a_load_from_l1_is_faster_than_one_from_memory() {
    let json = probe_json("memlat", "--size 16k,64m --pages thp --pattern random --budget 8s");
    let rows = json["result"]["rows"].as_array().unwrap();
    let median = |size: u64| {
        let row = rows.iter().find(|row| row["size_bytes"] == size).unwrap();
        row["load_ns"]["median"].as_f64().unwrap()
    };
    assert!(median(16 << 10) * 3.0 < median(64 << 20), "{rows:?}");
    // No percentile of single loads is claimed anywhere.
    assert!(json["result"]["unseen"].as_str().unwrap().contains("percentiles"));
}

#[test]
fn the_table_is_rectangular_csv() {
    let rows = probe_csv("memlat", "--size 16k,32k --pages 4k --budget 2s");
    assert_eq!(rows.len(), 4);
}

#[test]
fn the_page_has_a_column_for_each_page_size_and_order() {
    let page = terrace("measure memlat --size 16k,1m --budget 3s").done();
    assert!(page.contains("4k random") && page.contains("thp in-page"), "{page}");
}

/// Seen: "L1 64 KiB to 16 MiB", of sizes none of which fits L1.
#[test]
fn sizes_that_cannot_tell_name_no_cache() {
    let json = probe_json("memlat", "--size 64k,16m --pages thp --pattern random --budget 4s");
    let caches = json["result"]["caches"].as_array().unwrap();
    assert!(caches.iter().all(|cache| cache["measured"].is_null()), "{caches:?}");
    assert_eq!(json["result"]["runs"]["covers"], "between_runs");
    let page = terrace("measure memlat --size 64k,16m --pages thp --quick --budget 2s").done();
    assert!(!page.contains("64 KiB to"), "{page}");
    assert!(page.contains("more than a doubling apart"), "{page}");
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let line = "measure memlat --size 4k,8k,16k,32k,64k,128k,256k,512k,1m,2m,4m,8m,16m --budget 1h";
    assert_interrupted(&interrupted(line, &["0.4", "0.6", "0.8"]), "4k random");
}
