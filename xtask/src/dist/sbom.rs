//! What is linked into the binary as a CycloneDX document: each crate with its version, licence and
//! the checksum of its package, and which uses which.

use serde_json::{Value, json};

use super::Release;
use super::crates::LinkedCrate;
use super::tools;
use crate::error::Error;

/// The version of the format that is written.
const SPECIFICATION: &str = "1.5";

/// What a page of `view` carries; `tidy` holds its files to this version.
const UPLOT: (&str, &str) = ("uPlot", "1.6.32");

/// The document.
///
/// # Errors
/// If the compiler does not say its version.
pub(super) fn cyclonedx(release: &Release, linked: &[LinkedCrate]) -> Result<String, Error> {
    let said = tools::rustc(&release.root, &["--version"])?;
    let compiler = said.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let document = document(release, linked, &compiler);
    let text = serde_json::to_string_pretty(&document);
    text.map(|text| text + "\n").map_err(|error| Error::Failed(format!("SBOM: {error}")))
}

fn document(release: &Release, linked: &[LinkedCrate], compiler: &str) -> Value {
    let seconds = i64::try_from(release.source.epoch_s).unwrap_or(i64::MAX);
    let time = model::recording::wall_clock::date_and_time(seconds, 0).replace(' ', "T");
    let is_product = |one: &&LinkedCrate| one.name == "terrace";
    let product = linked.iter().find(is_product).map(|one| component(one, "application"));
    let mut components: Vec<Value> =
        linked.iter().filter(|one| !is_product(one)).map(|one| component(one, "library")).collect();
    components.push(json!({
        "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": compiler,
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    }));
    components.push(json!({
        "type": "library", "bom-ref": "uplot", "name": UPLOT.0, "version": UPLOT.1,
        "purl": format!("pkg:npm/uplot@{}", UPLOT.1), "licenses": [{ "expression": "MIT" }],
    }));
    let depends = |one: &LinkedCrate| {
        let uses: Vec<String> = one.uses.iter().map(|index| reference(&linked[*index])).collect();
        json!({ "ref": reference(one), "dependsOn": uses })
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "timestamp": format!("{time}Z"),
            "component": product,
            "properties": [
                { "name": "commit", "value": release.source.commit },
                { "name": "target", "value": release.target },
            ],
        },
        "components": components,
        "dependencies": linked.iter().map(depends).collect::<Vec<_>>(),
    })
}

fn component(one: &LinkedCrate, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(one),
        "name": one.name,
        "version": one.version,
        "licenses": [{ "expression": one.license.replace('/', " OR ") }],
    });
    // A member is on no registry.
    if let Some(checksum) = &one.checksum {
        component["purl"] = reference(one).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn reference(one: &LinkedCrate) -> String {
    format!("pkg:cargo/{}@{}", one.name, one.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::{crates, source::Source};
    use std::collections::BTreeSet;

    #[test]
    fn every_component_is_named_once_and_every_use_leads_to_one() {
        let root = crate::workspace::current_root().unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let linked = crates::linked(&root, target).unwrap();
        let source = Source { commit: "abc".to_owned(), epoch_s: 1_700_000_000 };
        let release = Release::of(&root, &source, target).unwrap();
        let document = document(&release, &linked, "1.95.0");
        assert_eq!(document["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(document["metadata"]["component"]["name"], "terrace");
        let components = document["components"].as_array().unwrap();
        let named = |value: &Value| value["bom-ref"].as_str().unwrap().to_owned();
        let mut names: BTreeSet<String> = components.iter().map(named).collect();
        assert_eq!(names.len(), components.len());
        names.insert(named(&document["metadata"]["component"]));
        for depends in document["dependencies"].as_array().unwrap() {
            let uses = depends["dependsOn"].as_array().unwrap().iter();
            for name in uses.chain([&depends["ref"]]) {
                assert!(names.contains(name.as_str().unwrap()), "{name}");
            }
        }
        let zstd = components.iter().find(|one| one["name"] == "zstd").unwrap();
        assert_eq!(zstd["hashes"][0]["content"].as_str().unwrap().len(), 64);
        let other = Release { target: "other".to_owned(), ..release };
        assert_eq!(
            document["components"],
            super::document(&other, &linked, "1.95.0")["components"]
        );
    }
}
