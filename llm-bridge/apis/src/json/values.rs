//! How many values a JSON text has, before they are made.

/// The number of values in a JSON text, or of one that is not JSON some number.
pub fn values_in(json: &[u8]) -> usize {
    let (mut values, mut in_text, mut is_escaped) = (1_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_the_values_of_a_text_are_counted() {
        for (json, values) in [
            ("{}", 2),
            (r#"{"a": [1, 2, {"b": ","}]}"#, 6),
            (r#"{"a": "\"[{,\\", "b": 1}"#, 3),
            (r#""[[[[""#, 1),
        ] {
            assert_eq!(values_in(json.as_bytes()), values, "{json}");
        }
    }
}
