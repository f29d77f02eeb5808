//! Foreign texts: characters that a person does not see and a model reads, and texts that are too long to repeat; and the paths of source files.

use std::path::{Component, Path, PathBuf};

/// Whether a person does not see a character: controls, fillers, marks of direction, and tags, in which text for models alone can
/// be hidden. Tab and the ends of lines are not among them, nor are the joiners U+200C and U+200D and the variation selectors up to
/// U+FE0F: Persian, Hindi and emoji need them.
///
/// ```
/// use registry_core::text::is_invisible;
///
/// assert!("Delete\u{202e} the file".contains(is_invisible));
/// assert!(!"می‌خواهم\n❤️".contains(is_invisible));
/// ```
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}' // controls
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' // no width, marks of direction
        | '\u{2028}'..='\u{202e}' // separators of lines, other directions
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' // tags, and selectors that spell bytes
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' // private use
    )
}

/// A text in which what nobody sees, or what turns the text around, is written as an escape: for a person who decides about it.
///
/// ```
/// use registry_core::text::visible;
///
/// assert_eq!(visible("\u{202e}gpj.x"), r"\u{202e}gpj.x");
/// assert_eq!(visible("a\u{200d}b"), r"a\u{200d}b");
/// assert_eq!(visible("می‌خواهم ❤️"), "می‌خواهم ❤️");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        // Some words and pictures need a joiner; behind a letter of ASCII it only hides.
        let joins = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
        if is_invisible(c) || joins && before.is_none_or(|before: char| before.is_ascii()) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    shown
}

/// The beginning of a text, with `…` in place of what is beyond `most` bytes.
///
/// ```
/// use registry_core::text::cut;
///
/// assert_eq!(cut("Zürich".to_owned(), 2), "Z…");
/// assert_eq!(cut("Zürich".to_owned(), 7), "Zürich");
/// ```
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// The beginning of a text, with `…` in place of what is beyond `longest` characters.
pub fn shorten(mut text: String, longest: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The path of a source file without `FOLDER/..` in it, as rustc writes that of a tool where `discover!("tools")` stands in `src/`.
///
/// ```
/// use registry_core::text::plain_path;
///
/// assert_eq!(plain_path("shop/src/../tools/stock.rs"), "shop/tools/stock.rs");
/// assert_eq!(plain_path("../shop/tools/stock.rs"), "../shop/tools/stock.rs");
/// ```
pub fn plain_path(path: &str) -> String {
    let mut plain = PathBuf::new();
    for component in Path::new(path).components() {
        let is_within = matches!(plain.components().next_back(), Some(Component::Normal(_)));
        if component == Component::ParentDir && is_within {
            plain.pop();
        } else {
            plain.push(component);
        }
    }
    plain.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::is_invisible;

    #[test]
    fn b3_what_a_person_does_not_see_is_found() {
        for hidden in
            ['\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}', '\u{e0100}', '\u{1b}', '\u{ad}']
        {
            assert!(is_invisible(hidden), "{hidden:?}");
        }
    }

    #[test]
    fn b3_what_languages_need_is_let_through() {
        for text in ["Wetter für Zürich\n\t\r", "می‌خواهم", "क्‍ष", "👩‍👩‍👧 ❤️", "天気", "שלום", "a → b"]
        {
            assert!(!text.contains(is_invisible), "{text}");
        }
    }
}
