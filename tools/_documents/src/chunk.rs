//! Cuts a document into passages along its headings, paragraphs and sentences.

use serde::Serialize;
use toolrack_web::Line;

/// A passage is closed at the next paragraph when it has so many characters: enough to answer a question, few enough that five of
/// them fit a small model's context.
pub(crate) const TARGET: usize = 1000;
/// No passage has more characters.
const MAX: usize = 1600;

/// A heading with more characters is text: it stands over every passage below it.
const MAX_HEADING: usize = 200;

/// A passage as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Chunk {
    /// The headings above it, outermost first.
    pub(crate) section: String,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) text: String,
}

/// What stands between the headings of a section.
pub(crate) const SECTION_SEPARATOR: &str = " > ";

/// The passages of a document, in their order. Headings are in their section and not in the text.
pub(crate) fn chunks(lines: &[Line]) -> Vec<Chunk> {
    let mut cutter = Cutter::default();
    for line in lines {
        cutter.line(line);
    }
    cutter.close();
    cutter.chunks
}

#[derive(Default)]
struct Cutter {
    chunks: Vec<Chunk>,
    /// The headings that are open, with their levels.
    headings: Vec<(u8, String)>,
    text: String,
    characters: usize,
    place: Option<(u32, u32)>,
    /// A paragraph ended and nothing was written since.
    paragraph_ended: bool,
    /// The last heading, while nothing stands below it.
    bare_heading: Option<Line>,
}

impl Cutter {
    fn line(&mut self, line: &Line) {
        if line.heading > 0 && !has_more(&line.text, MAX_HEADING) {
            // One that has others below it is in their section.
            self.bare_heading = self.bare_heading.take().filter(|bare| line.heading <= bare.heading);
            self.close();
            self.headings.retain(|(level, _)| *level < line.heading);
            self.headings.push((line.heading, line.text.trim().to_owned()));
            self.bare_heading = Some(line.clone());
            return;
        }
        if line.text.trim().is_empty() {
            self.paragraph_ended = true;
            return;
        }
        if self.paragraph_ended && self.characters >= TARGET {
            self.close();
        }
        for piece in pieces(line) {
            let length = piece.chars().count();
            if self.characters + self.separator(line.number).len() + length > MAX {
                self.close();
            }
            self.write(line.number, piece, length);
        }
    }

    /// What stands between what was written and what comes of that line.
    fn separator(&self, number: u32) -> &'static str {
        match self.place {
            None => "",
            Some(_) if self.paragraph_ended => "\n\n",
            Some((_, last)) if last == number => " ",
            Some(_) => "\n",
        }
    }

    fn write(&mut self, number: u32, piece: &str, length: usize) {
        let separator = self.separator(number);
        self.text.push_str(separator);
        self.text.push_str(piece);
        self.characters += separator.len() + length;
        self.paragraph_ended = false;
        self.bare_heading = None;
        let first = self.place.map_or(number, |(first, _)| first);
        self.place = Some((first, number));
    }

    /// Ends the passage. A heading with nothing below it is a passage by itself, so that its words are found.
    fn close(&mut self) {
        let text = std::mem::take(&mut self.text);
        let place = self.place.take();
        (self.characters, self.paragraph_ended) = (0, false);
        let bare = self.bare_heading.take().map(|line| ((line.number, line.number), line.text));
        if let Some(((first, last), text)) = place.map(|place| (place, text)).or(bare) {
            let headings: Vec<&str> = self.headings.iter().map(|(_, text)| text.as_str()).collect();
            let section = headings.join(SECTION_SEPARATOR);
            self.chunks.push(Chunk { section, first, last, text: text.trim_end().to_owned() });
        }
    }
}

/// A line in pieces that each fit a passage: whole where it does, else its sentences where it has such, else its words.
fn pieces(line: &Line) -> Vec<&str> {
    let text = line.text.trim_end();
    if !has_more(text, MAX) {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while has_more(rest, TARGET - 1) {
        let end = rest.char_indices().nth(TARGET).map_or(rest.len(), |(at, _)| at);
        let head = rest.get(..end).unwrap_or(rest);
        let sentence = if line.verbatim { None } else { sentence_end(head) };
        let cut = sentence.or_else(|| head.rfind(char::is_whitespace)).filter(|cut| *cut > 0);
        let (piece, tail) = rest.split_at_checked(cut.unwrap_or(end)).unwrap_or((rest, ""));
        pieces.push(piece.trim());
        rest = tail.trim_start();
    }
    pieces.push(rest.trim_end());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Whether a text has more characters. A long one is not read to its end.
fn has_more(text: &str, characters: usize) -> bool {
    text.chars().nth(characters).is_some()
}

/// Where the last whole sentence ends.
fn sentence_end(text: &str) -> Option<usize> {
    let mut ends = text.char_indices().rev();
    let mut after = None;
    ends.find_map(|(at, c)| {
        let next = after.replace(c);
        let ends = match c {
            '.' | '!' | '?' | '…' => next.is_some_and(char::is_whitespace),
            '。' | '！' | '？' => true,
            _ => false,
        };
        ends.then_some(at + c.len_utf8())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        text.lines()
            .zip(1..)
            .map(|(text, number)| match text.strip_prefix('#') {
                Some(rest) => {
                    let deeper = rest.len() - rest.trim_start_matches('#').len();
                    Line::heading(
                        number,
                        1 + u8::try_from(deeper).unwrap(),
                        rest.trim_start_matches('#').trim(),
                    )
                }
                None => Line::text(number, text),
            })
            .collect()
    }

    fn cut(text: &str) -> Vec<Chunk> {
        chunks(&lines(text))
    }

    #[test]
    fn p6_a_heading_that_is_too_long_is_text() {
        let long = "word ".repeat(100_000);
        let cut = cut(&format!("# Top\n## {long}\nBelow.\n# {long}"));
        assert!(cut.iter().all(|chunk| chunk.section == "Top" && chunk.text.chars().count() <= MAX));
        assert!(cut.len() > 500 && cut.iter().any(|chunk| chunk.text.contains("Below.")));
    }

    #[test]
    fn p6_a_passage_carries_its_place() {
        let chunks = cut("# A\none\n\ntwo\n## B\nthree\n### C\nfour\n## D\n\nfive\n");
        let places: Vec<_> =
            chunks.iter().map(|c| (c.section.as_str(), c.first, c.last, c.text.as_str())).collect();
        assert_eq!(
            places,
            [
                ("A", 2, 4, "one\n\ntwo"),
                ("A > B", 6, 6, "three"),
                ("A > B > C", 8, 8, "four"),
                ("A > D", 11, 11, "five")
            ]
        );
    }

    #[test]
    fn p6_a_heading_alone_is_found_by_itself() {
        let chunks = cut("# A\n## B\n## C\n");
        let places: Vec<_> = chunks.iter().map(|c| (c.section.as_str(), c.first, c.text.as_str())).collect();
        assert_eq!(places, [("A > B", 2, "B"), ("A > C", 3, "C")]);
    }

    #[test]
    fn p6_long_sections_are_cut_between_paragraphs() {
        let paragraph = "Words of a paragraph that says little. ".repeat(15);
        let text = format!("# A\n{paragraph}\n\n{paragraph}\n\n{paragraph}\n");
        let chunks = cut(&text);
        assert_eq!(chunks.len(), 2, "{chunks:?}");
        assert_eq!((chunks[0].first, chunks[0].last, chunks[1].first), (2, 4, 6));
        assert!(chunks.iter().all(|chunk| chunk.section == "A"));
    }

    #[test]
    fn p6_a_long_line_is_cut_between_sentences_and_nothing_is_lost() {
        for sentence in ["This sentence has some words. ", "word ", "x", "文章です。", "é"] {
            let text = sentence.repeat(5000 / sentence.chars().count());
            let chunks = cut(&text);
            assert!(chunks.len() > 2, "{sentence}");
            for chunk in &chunks {
                assert!(chunk.text.chars().count() <= MAX, "{sentence}");
                let ends = chunk.text.ends_with(sentence.trim_end());
                assert!(ends, "{sentence}: {:?}", chunk.text.chars().rev().take(30).collect::<String>());
            }
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let joined: String = chunks.iter().map(|chunk| squeezed(&chunk.text)).collect();
            assert_eq!(joined, squeezed(&text), "{sentence}");
        }
    }

    #[test]
    fn p6_no_passage_has_more_characters_whatever_its_paragraphs() {
        let text = format!("{}{}\n\n{}", "x\n\n".repeat(400), "y".repeat(MAX - TARGET), "z".repeat(MAX));
        let chunks = cut(&text);
        let lengths: Vec<_> = chunks.iter().map(|chunk| chunk.text.chars().count()).collect();
        assert!(lengths.iter().all(|length| *length <= MAX) && lengths.last() == Some(&MAX), "{lengths:?}");
    }

    #[test]
    fn p6_what_is_no_prose_is_not_cut_at_its_dots() {
        let row = format!("{}A. {}", "word ".repeat(150), "word ".repeat(200));
        let first = |verbatim| pieces(&Line { verbatim, ..Line::text(1, row.as_str()) })[0].to_owned();
        assert!(first(false).ends_with("A.") && first(true).len() > first(false).len(), "{}", first(true));
    }

    #[test]
    fn p6_nothing_has_no_passages() {
        assert_eq!(cut(""), []);
        assert_eq!(cut("\n \n\t\n"), []);
    }
}
