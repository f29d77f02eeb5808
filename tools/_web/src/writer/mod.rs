//! Writes text as the tokens of a page come, with the marks of Markdown or without them.

mod inline;
mod table;

use html5gum::Token;
use registry_core::text::is_invisible;
use url::Url;

use crate::{
    Line, Page,
    elements::{Role, has_no_end, is_around, is_hidden, role},
    lines::{Newlines, Start, lines},
    one_line,
    skipping::{Closed, Skipped},
    tokens,
};
use inline::Open;
use table::Row;

/// More is not written, whatever the page has.
const MAX_OUTPUT: usize = 1_000_000;
/// A main part with less text than this is not the page.
const MIN_MAIN: usize = 200;
const MAX_NESTING: usize = 8;
const MAX_HEADING: u8 = 4;
const MAX_METADATA: usize = 100;

/// Writes a page down as its tags and texts come.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Where the links lead from. Without it the text is written without links and other marks, all parts of it.
    base: Option<Url>,
    skips_around: bool,
    out: String,
    starts: Vec<Start>,
    /// No more lines are written than one more than these.
    most_lines: usize,
    /// The line of the source that is being read.
    number: u32,
    heading: u8,
    title: Option<String>,
    in_title: bool,
    language: Option<String>,
    metadata: Vec<(String, String)>,
    /// Line ends that are due before the next text.
    due: usize,
    space_due: bool,
    /// What the next text begins with, such as the mark of a list item.
    prefix: String,
    /// The element that is left out.
    skipped: Option<Skipped>,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<usize>>,
    quotes: usize,
    preformatted: bool,
    link: Option<Open>,
    code: Option<Open>,
    row: Row,
    in_cell: bool,
    main_depth: usize,
    /// Where in the output the main parts are.
    mains: Vec<(usize, usize)>,
}

impl Writer {
    pub(crate) fn new(base: Option<&Url>, skips_around: bool) -> Self {
        Self { base: base.cloned(), skips_around, number: 1, most_lines: usize::MAX, ..Self::default() }
    }

    pub(crate) fn at_most(self, most_lines: usize) -> Self {
        Self { most_lines, ..self }
    }

    pub(crate) fn read(mut self, html: &str) -> Self {
        let mut newlines = Newlines::new(html);
        for token in tokens(html) {
            if self.marks() && self.out.len() > MAX_OUTPUT || self.starts.len() > self.most_lines {
                break;
            }
            match token {
                Token::StartTag(tag) => {
                    self.number = newlines.line_of(tag.span.start);
                    let name = String::from_utf8_lossy(&tag.name);
                    let attribute = |name: &str| {
                        tag.attributes
                            .get(name.as_bytes())
                            .map(|value| String::from_utf8_lossy(value).into_owned())
                    };
                    self.open(&name, attribute);
                }
                Token::EndTag(tag) => self.close(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => {
                    self.number = newlines.line_of(text.span.start);
                    self.text(&String::from_utf8_lossy(&text));
                }
                _ => {}
            }
        }
        if self.preformatted {
            self.close_preformatted();
        }
        self
    }

    pub(crate) fn into_markdown(mut self) -> Page<String> {
        if self.main_depth > 0
            && let Some((_, end)) = self.mains.last_mut()
        {
            *end = self.out.len();
        }
        // Many articles are a list of them, or comments; one is the page.
        let main = match self.mains.as_slice() {
            [(start, end)] => self.out.get(*start..*end).map(str::trim).filter(|text| text.len() >= MIN_MAIN),
            _ => None,
        };
        let markdown = main.unwrap_or(self.out.trim()).to_owned();
        self.into_page(markdown)
    }

    fn into_page<C>(self, content: C) -> Page<C> {
        let title = self.title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
        Page { title, language: self.language, metadata: self.metadata, content }
    }

    /// `None` where there are more than are to be written.
    pub(crate) fn into_lines(self) -> Option<Page<Vec<Line>>> {
        (self.starts.len() <= self.most_lines).then(|| {
            let lines = lines(&self.out, &self.starts);
            self.into_page(lines)
        })
    }

    fn open(&mut self, name: &str, attribute: impl Fn(&str) -> Option<String>) {
        if let Some(skipped) = &mut self.skipped {
            if !skipped.ends_before(name) {
                return;
            }
            self.skipped = None;
        }
        self.in_title = name == "title" && self.title.is_none();
        let role = role(name);
        let skips_around = match name {
            // The header of an article has its heading.
            "header" if !self.marks() => false,
            "header" | "footer" => self.skips_around && self.main_depth == 0,
            _ => self.skips_around,
        };
        if is_hidden(name, role, &attribute) || skips_around && is_around(name, role, &attribute) {
            self.skipped = (!has_no_end(name)).then(|| Skipped::new(name));
            return;
        }
        match role {
            Role::Heading(level) => {
                self.apart(2);
                self.heading = level;
                if self.marks() {
                    self.prefix = format!("{} ", "#".repeat(level.min(MAX_HEADING).into()));
                }
            }
            Role::Main => {
                self.apart(2);
                if self.main_depth == 0 && self.marks() {
                    self.mains.push((self.out.len(), self.out.len()));
                }
                self.main_depth += 1;
            }
            Role::List => {
                self.paragraph();
                let first = attribute("start").and_then(|start| start.parse::<u16>().ok()).unwrap_or(1);
                self.lists.push((name == "ol").then_some(first.into()));
            }
            Role::Item => self.item(),
            Role::Quote => {
                self.apart(2);
                self.quotes += 1;
            }
            Role::Preformatted if !self.preformatted => {
                self.apart(2);
                if self.marks() {
                    self.prefix.push_str("```\n");
                    self.write_due();
                }
                self.preformatted = true;
            }
            Role::Code if !self.preformatted => self.code = Some(Open::default()),
            Role::Link => self.open_link(attribute("href")),
            Role::Row => self.open_row(),
            Role::Cell => self.open_cell(name == "th"),
            Role::Table => self.table(),
            Role::Block => self.paragraph(),
            Role::Line => self.apart(1),
            _ => self.void(name, attribute),
        }
    }

    /// Elements that have no end.
    fn void(&mut self, name: &str, attribute: impl Fn(&str) -> Option<String>) {
        match name {
            "br" if self.preformatted => self.out.push('\n'),
            "br" => self.apart(1),
            "hr" => {
                self.apart(2);
                self.mark("---");
                self.apart(2);
            }
            "html" => self.language = attribute("lang").map(|language| language.trim().to_owned()),
            "meta" => {
                if let (Some(name), Some(content)) = (attribute("name"), attribute("content"))
                    && self.metadata.len() < MAX_METADATA
                {
                    self.metadata.push((name.trim().to_ascii_lowercase(), one_line(&content)));
                }
            }
            "img" if self.marks() => {
                if let Some(alt) = attribute("alt").map(|alt| one_line(&alt)).filter(|alt| !alt.is_empty()) {
                    self.text(&format!(" (image: {alt}) "));
                }
            }
            "base" => {
                let base = attribute("href").and_then(|href| self.resolve(&href));
                if let Some(base) = base.and_then(|base| Url::parse(&base).ok()) {
                    self.base = Some(base);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(skipped) = &mut self.skipped {
            match skipped.close(name) {
                Closed::Inside => return,
                Closed::Itself => {
                    self.skipped = None;
                    return;
                }
                Closed::Around => self.skipped = None,
            }
        }
        self.in_title = false;
        match role(name) {
            Role::Main if self.main_depth > 0 => {
                self.main_depth -= 1;
                if self.main_depth == 0
                    && let Some((_, end)) = self.mains.last_mut()
                {
                    *end = self.out.len();
                }
                self.apart(2);
            }
            Role::List => {
                self.lists.pop();
                self.paragraph();
            }
            Role::Quote => {
                self.apart(2);
                self.quotes = self.quotes.saturating_sub(1);
            }
            Role::Preformatted if self.preformatted => self.close_preformatted(),
            Role::Code => self.close_code(),
            Role::Link => self.close_link(),
            Role::Row => self.close_row(),
            Role::Table => self.table(),
            Role::Heading(_) => {
                self.prefix.clear();
                self.heading = 0;
                self.apart(2);
            }
            Role::Block => self.paragraph(),
            Role::Line | Role::Item => self.apart(1),
            _ => {}
        }
    }

    /// At least so many line ends before the next text. In the cell of a table a line does not end, save for a list.
    fn apart(&mut self, lines: usize) {
        if self.in_cell && lines < 2 && self.lists.is_empty() {
            self.space_due = true;
        } else if !self.preformatted {
            self.due = self.due.max(lines);
        }
    }

    /// Apart from its neighbours, but not from the rest of its list.
    fn paragraph(&mut self) {
        self.apart(if self.lists.is_empty() { 2 } else { 1 });
    }

    fn item(&mut self) {
        self.apart(1);
        if !self.marks() {
            return;
        }
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_NESTING));
        self.prefix = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}- "),
        };
    }

    fn text(&mut self, text: &str) {
        let text = &text.replace(|c: char| is_invisible(c) && !c.is_whitespace(), "");
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
            return;
        }
        if self.skipped.is_some() {
            return;
        }
        if self.preformatted {
            self.verbatim(text);
            return;
        }
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                self.write_due();
                let start = self.out.len();
                for open in [&mut self.link, &mut self.code].into_iter().flatten() {
                    open.start.get_or_insert(start);
                }
                self.out.push_str(word);
            }
            self.space_due |= word.len() < piece.len();
            self.number += u32::from(piece.ends_with('\n'));
        }
    }

    /// Text with its lines and spaces as they are.
    fn verbatim(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if !self.marks() && !piece.trim().is_empty() {
                self.write_due();
                self.begin_line();
            }
            self.out.push_str(piece);
            self.number += u32::from(piece.ends_with('\n'));
        }
    }

    fn close_preformatted(&mut self) {
        self.preformatted = false;
        self.out.truncate(self.out.trim_end().len());
        if self.marks() {
            self.out.push_str("\n```");
        }
        self.apart(2);
    }

    fn marks(&self) -> bool {
        self.base.is_some()
    }

    /// Writes what is Markdown and not of the page.
    fn mark(&mut self, mark: &str) {
        if self.marks() {
            self.text(mark);
        }
    }

    fn begin_line(&mut self) {
        // Text of several elements may come to the same line.
        if !self.marks() && (self.out.is_empty() || self.out.ends_with('\n')) {
            let Self { number, heading, preformatted: verbatim, .. } = *self;
            self.starts.push(Start { at: self.out.len(), number, heading, verbatim });
        }
    }

    /// Writes what has to be there before the next text.
    fn write_due(&mut self) {
        if self.due > 0 {
            let quotes = if self.marks() { self.quotes.min(MAX_NESTING) } else { 0 };
            let quote = "> ".repeat(quotes);
            if !self.out.is_empty() {
                self.out.push_str(&format!("\n{}", quote.trim_end()).repeat(self.due - 1));
                self.out.push('\n');
            }
            self.out.push_str(&quote);
        } else if self.space_due && !self.out.ends_with(['\n', ' ']) && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.due = 0;
        self.space_due = false;
        self.begin_line();
        self.out.push_str(&std::mem::take(&mut self.prefix));
    }
}
