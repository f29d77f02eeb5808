//! Characters that a person does not see and a model reads: what a foreign description may not have.

use serde_json::Value;

/// The first hidden character in any text of a definition, names of members included.
pub(crate) fn find_hidden(value: &Value) -> Option<char> {
    match value {
        Value::String(text) => hidden_in(text),
        Value::Array(items) => items.iter().find_map(find_hidden),
        Value::Object(members) => {
            members.iter().find_map(|(name, value)| hidden_in(name).or_else(|| find_hidden(value)))
        }
        _ => None,
    }
}

fn hidden_in(text: &str) -> Option<char> {
    text.chars().find(|c| is_hidden(*c))
}

/// Not among them are the joiners U+200C and U+200D and the variation selectors up to U+FE0F: Persian, Hindi and emoji need them.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}' // controls
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' // no width, marks of direction
        | '\u{2028}'..='\u{202e}' // lines of their own, other directions
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' // tags, and selectors that spell bytes
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' // private
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find_hidden;

    #[test]
    fn b3_what_a_person_does_not_see_is_found_anywhere() {
        for hidden in
            ["\u{200b}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{e0041}", "\u{e0100}", "\u{1b}", "\u{ad}"]
        {
            let text = format!("Reads a file.{hidden}");
            let deep = json!({"properties": {"path": {"enum": [1, text]}}});
            assert_eq!(find_hidden(&deep), hidden.chars().next(), "{deep}");
            assert_eq!(find_hidden(&json!({ text: 1 })), hidden.chars().next());
        }
    }

    #[test]
    fn b3_what_languages_need_is_let_through() {
        for text in ["Wetter für Zürich\n\t\r", "می‌خواهم", "क्‍ष", "👩‍👩‍👧 ❤️", "天気", "שלום", "a → b"]
        {
            assert_eq!(find_hidden(&json!(text)), None, "{text}");
        }
    }
}
