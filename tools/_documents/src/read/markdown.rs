//! Markdown, line by line: headings, code, front matter.

use serde_json::{Map, Value};
use toolrack_web::Line;

use super::Text;

/// Front matter has no more lines.
const MAX_FRONT_MATTER: usize = 500;

pub(super) fn read(text: &str) -> Text {
    let lines: Vec<&str> = text.lines().collect();
    let (metadata, behind) = front_matter(&lines);
    let mut read = Text { metadata, ..Text::default() };
    let mut fence: Option<&str> = None;
    for (number, line) in (1..).zip(&lines).skip(behind) {
        let mark = fence_mark(line);
        match (fence, mark) {
            // What ends code is as long as what began it, and nothing stands behind it.
            (Some(open), Some(mark)) if mark.starts_with(open) && line.trim() == mark => fence = None,
            (Some(_), _) => read.lines.push(Line { verbatim: true, ..Line::text(number, *line) }),
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => read.line(number, line),
        }
    }
    let field = |name: &str| read.metadata.get(name).and_then(Value::as_str).map(str::to_owned);
    let first_heading = || read.lines.iter().find(|line| line.heading == 1).map(|line| line.text.clone());
    let (title, language) =
        (field("title").or_else(first_heading), field("lang").or_else(|| field("language")));
    Text { title, language, ..read }
}

impl Text {
    fn line(&mut self, number: u32, line: &str) {
        if let Some((level, text)) = heading(line) {
            self.lines.push(Line::heading(number, level, text));
            return;
        }
        // A line of `===` or `---` makes a heading of the text above it.
        let level = match line.trim_end() {
            under if under.len() >= 2 && under.chars().all(|c| c == '=') => 1,
            under if under.len() >= 2 && under.chars().all(|c| c == '-') => 2,
            _ => 0,
        };
        let above = self.lines.last_mut().filter(|above| {
            above.number + 1 == number && above.heading == 0 && !above.verbatim && is_plain(&above.text)
        });
        match above {
            Some(above) if level > 0 => above.heading = level,
            _ if level > 0 => {}
            _ => {
                let verbatim = line.trim_start().starts_with('|');
                self.lines.push(Line { verbatim, ..Line::text(number, line) });
            }
        }
    }
}

/// Whether a line is one of a paragraph, and not of a list, a table or a quote.
fn is_plain(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphanumeric() || "`*_[(\"".contains(c)) && !line.starts_with("* ")
}

fn heading(line: &str) -> Option<(u8, &str)> {
    let hashes = line.trim_start().len() - line.trim_start().trim_start_matches('#').len();
    let level = u8::try_from(hashes).ok().filter(|level| (1..=6).contains(level))?;
    let text = line.trim_start().trim_start_matches('#');
    let text = text.strip_prefix([' ', '\t']).or_else(|| text.is_empty().then_some(""))?;
    let text = text.trim();
    // `## Heading ##`
    let closed = text.trim_end_matches('#');
    Some((level, if closed.ends_with(' ') { closed.trim_end() } else { text }))
}

/// The marks that begin or end code.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    let (fence, info) = line.split_at_checked(length)?;
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(fence)
}

/// The fields of the front matter, and how many lines it takes. Of YAML only lines `key: value` are read.
fn front_matter(lines: &[&str]) -> (Map<String, Value>, usize) {
    let none = (Map::new(), 0);
    if lines.first().map(|line| line.trim_end()) != Some("---") {
        return none;
    }
    let inside = lines.iter().skip(1).take(MAX_FRONT_MATTER);
    let Some(end) = inside.clone().position(|line| matches!(line.trim_end(), "---" | "...")) else {
        return none;
    };
    // Else it is a text between two rules.
    let begins = inside.clone().next().is_some_and(|line| !line.trim().is_empty());
    if !begins || !inside.take(end).all(|line| is_yaml(line)) {
        return none;
    }
    let fields = lines.iter().skip(1).take(end).filter_map(|line| {
        let (key, value) = line.split_once(':').filter(|(key, _)| !key.starts_with([' ', '-', '#']))?;
        let value = value.trim();
        let quotes = ['"', '\'']
            .into_iter()
            .find(|quote| value.len() > 1 && value.starts_with(*quote) && value.ends_with(*quote));
        let value = quotes.map_or(value, |quote| value.trim_matches(quote));
        (!value.is_empty()).then(|| (key.trim().to_lowercase(), Value::from(value)))
    });
    (fields.collect(), end + 2)
}

/// Whether a line may be one of YAML: empty, a comment, a field, an item of a list, or what goes on from the line above.
fn is_yaml(line: &str) -> bool {
    let is_field =
        || line.split_once(':').is_some_and(|(_, value)| value.is_empty() || value.starts_with([' ', '\t']));
    line.trim().is_empty()
        || line == "-"
        || line.starts_with([' ', '\t', '#'])
        || line.starts_with("- ")
        || is_field()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let shown = |line: Line| format!("{}{} {}", "#".repeat(line.heading.into()), line.number, line.text);
        read(text).lines.into_iter().map(shown).collect()
    }

    #[test]
    fn p6_headings_are_known_in_each_form() {
        assert_eq!(
            shown("# A\n## B ##\ntext\nSetext\n===\nTwo\n---\n\n---\n#no\n####### no\n- item\n---\n"),
            ["#1 A", "##2 B", "3 text", "#4 Setext", "##6 Two", "8 ", "10 #no", "11 ####### no", "12 - item"]
        );
    }

    #[test]
    fn p6_code_has_no_headings() {
        assert_eq!(
            shown("```sh\n# comment\n~~~\n``` x\n```\n# A\n~~~~\n~~~\n# no\n~~~~\nend"),
            ["2 # comment", "3 ~~~", "4 ``` x", "#6 A", "8 ~~~", "9 # no", "11 end"]
        );
        assert_eq!(shown("```\n# open to the end"), ["2 # open to the end"]);
    }

    #[test]
    fn p6_front_matter_is_metadata_and_no_text() {
        let text =
            read("---\ntitle: \"A: b\"\nAuthor: Ada\ntags: [a, b]\nlist:\n  - x\nlang: de\n---\n# Head\n");
        assert_eq!((text.title.as_deref(), text.language.as_deref()), (Some("A: b"), Some("de")));
        assert_eq!((&text.metadata["author"], text.metadata.len()), (&Value::from("Ada"), 4));
        assert_eq!(text.lines, [Line::heading(9, 1, "Head")]);
        assert_eq!(read("---\nno end\n# A\n").title.as_deref(), Some("A"));
    }

    #[test]
    fn p6_a_text_between_two_rules_is_no_front_matter() {
        assert_eq!(
            shown("---\n\nThe warranty is 24 months.\n\n---\n\n# Other\n"),
            ["2 ", "3 The warranty is 24 months.", "4 ", "6 ", "#7 Other"]
        );
        assert_eq!(shown("---\n\nNote: no field.\n---\n").len(), 2);
        assert_eq!(shown("---\nTea is green.\n\n---\n").len(), 2);
        assert_eq!(shown("---\nsee https://a.b\n---\n"), ["##2 see https://a.b"]);
        let far = format!("---\n{}---\n", "a: b\n".repeat(MAX_FRONT_MATTER));
        assert_eq!(read(&far).lines.len(), MAX_FRONT_MATTER);
        let whole = "---\n# of us\ntitle: A\ntext: |\n  Long.\n\n  Longer.\ntags:\n- x\n...\nText";
        assert_eq!(shown(whole), ["11 Text"]);
        assert_eq!(read(whole).title.as_deref(), Some("A"));
    }

    #[test]
    fn k22_no_markdown_is_too_much() {
        for (piece, lines, headings) in [
            ("#", 1, 0),
            ("```", 0, 0),
            ("---\n", 0, 0),
            ("~~~\n", 0, 0),
            ("# \n", 2000, 2000),
            ("===\n", 0, 0),
            ("a\n===\n", 2000, 2000),
            ("é|\n", 2000, 0),
            ("---\n: \n---\n", 1999, 0),
        ] {
            let text = read(&piece.repeat(2000));
            let found = text.lines.iter().filter(|line| line.heading > 0).count();
            assert_eq!((text.lines.len(), found), (lines, headings), "{piece}");
            assert!(text.lines.iter().is_sorted_by_key(|line| line.number), "{piece}");
        }
    }
}
