//! Paths in JSON: as text, or as a list of bytes where they are none, so that every path comes
//! back as it was. For `#[serde(with = "path_text")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Text(String),
    Bytes(Vec<u8>),
}

pub(super) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => out.serialize_str(text),
        None => path.as_os_str().as_bytes().serialize(out),
    }
}

pub(super) fn deserialize<'a, D: Deserializer<'a>>(input: D) -> Result<PathBuf, D::Error> {
    Ok(match Told::deserialize(input)? {
        Told::Text(text) => PathBuf::from(text),
        Told::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
    })
}

/// For a path that may be absent.
pub(super) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::PathBuf;

    #[derive(Serialize, Deserialize)]
    struct Told(#[serde(with = "super")] PathBuf);

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        path.clone().map(Told).serialize(out)
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        input: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Told>::deserialize(input)?.map(|told| told.0))
    }
}
