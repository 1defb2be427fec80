//! Paths in JSON: as text, or as a list of bytes if they are not UTF-8, so that each path is read
//! as it was written. For `#[serde(with = "path_text")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The two forms of a path in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum PathForm {
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => out.serialize_str(text),
        None => path.as_os_str().as_bytes().serialize(out),
    }
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(input: D) -> Result<PathBuf, D::Error> {
    Ok(match PathForm::deserialize(input)? {
        PathForm::Text(text) => PathBuf::from(text),
        PathForm::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
    })
}

/// For a path that may be absent.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::PathBuf;

    #[derive(Serialize, Deserialize)]
    struct JsonPath(#[serde(with = "super")] PathBuf);

    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        path.clone().map(JsonPath).serialize(out)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        input: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<JsonPath>::deserialize(input)?.map(|path| path.0))
    }
}
