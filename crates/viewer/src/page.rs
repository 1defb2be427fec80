//! One page without a network: the style sheet, the modules and the data in one file.
//!
//! The modules in `web/` are plain ES modules that a type checker reads as they are. A page has
//! no place to import from, so they are put one after another in the order of their imports,
//! without their `import` and `export` words: names are unique over all of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// A piece of data in a page: an element with this id, which the page's modules look for.
#[derive(Clone, Debug)]
pub enum PageData {
    /// JSON text, as it is printed: `<script type="application/json" id=...>`.
    Json(&'static str, String),
    /// Bytes, compressed as zlib and in base64: `<script type="application/zlib" id=...>`.
    Bytes(&'static str, Vec<u8>),
}

/// Makes a page: `modules` are the texts of its modules, each after what it imports; the last
/// one starts the page.
#[must_use]
pub fn page(title: &str, style: &str, modules: &[&str], data: &[PageData]) -> String {
    let data: String = data.iter().map(element).collect();
    let code: String = modules.iter().map(|module| inlined(module)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n{data}\
         <script type=\"module\">\n{code}</script>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn element(data: &PageData) -> String {
    match data {
        // `<` is the only sign that could end the element or open a comment in it.
        PageData::Json(id, text) => {
            let text = text.replace('<', "\\u003c");
            format!("<script type=\"application/json\" id=\"{id}\">{text}</script>\n")
        }
        PageData::Bytes(id, bytes) => {
            let text = STANDARD.encode(compressed(bytes));
            format!("<script type=\"application/zlib\" id=\"{id}\">{text}</script>\n")
        }
    }
}

/// zlib, which a browser undoes with `DecompressionStream("deflate")`.
#[must_use]
pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // A vector takes all bytes; if it ever did not, nothing is better than a cut block.
    let whole = encoder.write_all(bytes).and_then(|()| encoder.finish());
    whole.unwrap_or_default()
}

/// A module's text without the words that only a file of its own may have.
fn inlined(module: &str) -> String {
    let mut text = String::with_capacity(module.len());
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("import ") {
            let mut import = line;
            while !import.trim_end().ends_with(';') {
                match lines.next() {
                    Some(next) => import = next,
                    None => break,
                }
            }
            continue;
        }
        text.push_str(line.strip_prefix("export ").unwrap_or(line));
        text.push('\n');
    }
    text
}

/// Text for between two tags or two quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lose_their_imports_and_exports_only() {
        let module = "import { a,\n  b } from \"./a.js\";\nexport function c() {\n  return a; // import x\n}\n";
        assert_eq!(inlined(module), "function c() {\n  return a; // import x\n}\n");
    }

    #[test]
    fn data_cannot_end_its_element() {
        let hostile = "{\"x\":\"</script><script>alert(1)</script>\"}".to_owned();
        let text = page("a <b>", "", &[], &[PageData::Json("view", hostile)]);
        assert_eq!(text.matches("</script>").count(), 2, "{text}");
        assert!(text.contains("<title>a &lt;b></title>"));
    }
}
