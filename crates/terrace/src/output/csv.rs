//! Comma-separated values: one header, then rows of as many fields (RFC 4180).
//!
//! Numbers are written in full, in the unit that the header names; what is absent is an
//! empty field.

/// Rows under a header.
#[derive(Clone, Debug)]
pub struct Sheet {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A field of a row.
pub trait Field {
    /// The field's text, not yet quoted.
    fn field(&self) -> String;
}

impl Field for f64 {
    fn field(&self) -> String {
        if self.is_finite() {
            self.to_string()
        } else {
            String::new()
        }
    }
}

macro_rules! plain_field {
    ($($kind:ty),+) => {$(
        impl Field for $kind {
            fn field(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
plain_field!(u8, u32, u64, usize, bool, &str, String);

impl<T: Field> Field for Option<T> {
    fn field(&self) -> String {
        self.as_ref().map(Field::field).unwrap_or_default()
    }
}

impl Sheet {
    /// A sheet without rows.
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; it has as many fields as the header.
    pub fn row(&mut self, fields: &[&dyn Field]) {
        debug_assert_eq!(fields.len(), self.header.len());
        self.rows
            .push(fields.iter().map(|field| field.field()).collect());
    }

    /// The text.
    pub fn render(&self) -> String {
        std::iter::once(&self.header)
            .chain(&self.rows)
            .map(|fields| {
                let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
                quoted.join(",") + "\n"
            })
            .collect()
    }
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_when_they_must_be() {
        let mut sheet = Sheet::new(&["name", "value", "note"]);
        sheet.row(&[&"a,b", &1.5, &None::<f64>]);
        sheet.row(&[&"say \"x\"", &f64::NAN, &Some(3_u64)]);
        assert_eq!(
            sheet.render(),
            "name,value,note\n\"a,b\",1.5,\n\"say \"\"x\"\"\",,3\n"
        );
    }
}
