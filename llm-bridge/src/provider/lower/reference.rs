//! What a `$ref` leads to.

use serde_json::Value;

/// The JSON pointer of a reference within its own document.
///
/// # Errors
/// Why it leads nowhere.
pub(super) fn pointer(root: &Value, reference: &str) -> Result<String, String> {
    let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
    let fragment = reference.strip_prefix('#').or_else(|| {
        let after = reference.strip_prefix(own.trim_end_matches('#'))?;
        if after.is_empty() { Some("") } else { after.strip_prefix('#') }
    });
    let nowhere = || format!("`$ref`: `{reference}` leads to nothing in the schema");
    let fragment = decoded(fragment.ok_or_else(nowhere)?).ok_or_else(nowhere)?;
    let found = if fragment.is_empty() || fragment.starts_with('/') {
        root.pointer(&fragment).map(|_| fragment)
    } else {
        anchored(root, &fragment)
    };
    found.ok_or_else(nowhere)
}

/// With its percent signs read.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes().iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let code = digit(rest.next())? * 16 + digit(rest.next())?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The place of the schema with an `$anchor`.
fn anchored(root: &Value, name: &str) -> Option<String> {
    let mut open = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        if value.get("$anchor").and_then(Value::as_str) == Some(name) {
            return Some(place);
        }
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(key, value)| (step(&place, key), value)));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, value)| (step(&place, &index.to_string()), value)));
            }
            _ => {}
        }
    }
    None
}

/// A JSON pointer one step further.
pub(super) fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_in_every_form() {
        let root = json!({"$id": "https://a.example/s", "$defs": {"a b": {"$anchor": "x"}, "c/d": {}}});
        for (reference, expected) in [
            ("#", Some("")),
            ("https://a.example/s", Some("")),
            ("#/$defs/a%20b", Some("/$defs/a b")),
            ("https://a.example/s#/$defs/c~1d", Some("/$defs/c~1d")),
            ("#x", Some("/$defs/a b")),
            ("#/$defs/none", None),
            ("#y", None),
            ("https://b.example/s", None),
            ("#%zz", None),
            ("other.json#/a", None),
        ] {
            assert_eq!(pointer(&root, reference).ok().as_deref(), expected, "{reference}");
        }
        assert!(pointer(&root, "#y").unwrap_err().contains("#y"));
    }
}
