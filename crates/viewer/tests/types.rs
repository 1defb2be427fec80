//! The modules of the pages are what their JSDoc says: `tsc --checkJs`, strict, over all of them.
//! Needs Node and the pinned compiler, which `cargo xtask test` gets.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use testkit::{TempDir, skip, web};

/// What the type checker says of the modules in `folder`; empty when nothing.
fn complaints(folder: &Path) -> Result<String, String> {
    let compiler = web::package("typescript")?.join("bin/tsc");
    let mut command = web::node()?;
    command.arg(compiler).arg("-p").arg(folder);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.success(), text.is_empty(), "{output:?}");
    Ok(text)
}

#[test]
fn every_module_is_typed() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    match complaints(&web) {
        Ok(text) => assert_eq!(text, ""),
        Err(need) => skip(need),
    }
}

#[test]
fn a_wrong_type_is_seen() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    if !web.is_dir() {
        return skip("the sources of the pages");
    }
    let directory = TempDir::new();
    let module = "import { figure } from \"./format.js\";\nexport const text = figure(1);\n";
    std::fs::write(directory.join("wrong.js"), module).unwrap();
    for name in ["tsconfig.json", "format.js"] {
        std::fs::copy(web.join(name), directory.join(name)).unwrap();
    }
    match complaints(directory.path()) {
        Ok(text) => assert!(text.contains("wrong.js(2,21)"), "{text}"),
        Err(need) => skip(need),
    }
}
