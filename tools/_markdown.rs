//! Markdown, written down as the tokens of a page come.

use html5gum::Token;
use toolrack_http::reqwest::Url;

use crate::{
    elements::{Role, is_around, is_hidden, is_invisible, role},
    html::{Page, one_line, tokens},
};

/// More is not written, whatever the page has.
const MAX_OUTPUT: usize = 1_000_000;
/// A longer address is left out.
const MAX_ADDRESS: usize = 2000;
/// A main part with less text than this is not the page.
const MIN_MAIN: usize = 200;
const MAX_NESTING: usize = 8;

/// Something that is put around text when it ends, if there was any.
#[derive(Debug)]
struct Open {
    start: Option<usize>,
    address: Option<String>,
}

/// The row of a table that is open.
#[derive(Debug, Default)]
struct Row {
    cells: usize,
    headings: usize,
    /// Where in the output it begins.
    start: usize,
}

/// Writes a page down as its tags and texts come.
#[derive(Debug)]
pub(crate) struct Writer {
    base: Url,
    skips_around: bool,
    out: String,
    title: Option<String>,
    in_title: bool,
    /// Line ends that are due before the next text.
    due: usize,
    space_due: bool,
    /// What the next text begins with, such as the mark of a list item.
    prefix: String,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
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
    pub(crate) fn new(address: &Url, skips_around: bool) -> Self {
        Self {
            base: address.clone(),
            skips_around,
            out: String::new(),
            title: None,
            in_title: false,
            due: 0,
            space_due: false,
            prefix: String::new(),
            skipped: None,
            lists: Vec::new(),
            quotes: 0,
            preformatted: false,
            link: None,
            code: None,
            row: Row::default(),
            in_cell: false,
            main_depth: 0,
            mains: Vec::new(),
        }
    }

    pub(crate) fn read(mut self, html: &str) -> Page {
        for token in tokens(html) {
            if self.out.len() > MAX_OUTPUT {
                break;
            }
            match token {
                Token::StartTag(tag) => {
                    let name = String::from_utf8_lossy(&tag.name);
                    let attribute = |name: &str| {
                        tag.attributes
                            .get(name.as_bytes())
                            .map(|value| String::from_utf8_lossy(value).into_owned())
                    };
                    self.open(&name, attribute);
                }
                Token::EndTag(tag) => self.close(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => self.text(&String::from_utf8_lossy(&text)),
                _ => {}
            }
        }
        self.finish()
    }

    fn finish(mut self) -> Page {
        if self.preformatted {
            self.out.push_str("\n```");
        }
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
        let title = self.title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
        Page { title, markdown }
    }

    fn open(&mut self, name: &str, attribute: impl Fn(&str) -> Option<String>) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name);
            return;
        }
        self.in_title = name == "title" && self.title.is_none();
        let role = role(name);
        let skips_around = match name {
            // The header of an article has its heading.
            "header" | "footer" => self.skips_around && self.main_depth == 0,
            _ => self.skips_around,
        };
        if is_hidden(name, role, &attribute) || skips_around && is_around(name, role, &attribute) {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        match role {
            Role::Heading(level) => {
                self.apart(2);
                self.prefix = format!("{} ", "#".repeat(level));
            }
            Role::Main => {
                self.apart(2);
                if self.main_depth == 0 {
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
                self.prefix.push_str("```\n");
                self.write_due();
                self.preformatted = true;
            }
            Role::Code if !self.preformatted => self.code = Some(Open { start: None, address: None }),
            Role::Link => {
                self.close_link();
                self.link = Some(Open { start: None, address: attribute("href") });
            }
            Role::Row => {
                self.end_row();
                self.apart(1);
                self.row.start = self.out.len();
            }
            Role::Cell => {
                if self.row.cells > 0 {
                    self.next_cell();
                }
                self.row.cells += 1;
                self.row.headings += usize::from(name == "th");
                self.in_cell = true;
            }
            Role::Table => {
                self.end_row();
                self.apart(2);
            }
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
                self.text("---");
                self.apart(2);
            }
            "img" => {
                if let Some(alt) = attribute("alt").map(|alt| one_line(&alt)).filter(|alt| !alt.is_empty()) {
                    self.text(&format!(" (image: {alt}) "));
                }
            }
            "base" => {
                if let Some(base) = attribute("href").and_then(|href| self.resolve(&href)) {
                    self.base = Url::parse(&base).unwrap_or_else(|_| self.base.clone());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
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
            Role::Preformatted if self.preformatted => {
                self.preformatted = false;
                self.out.truncate(self.out.trim_end().len());
                self.out.push_str("\n```");
                self.apart(2);
            }
            Role::Code => self.close_code(),
            Role::Link => self.close_link(),
            Role::Row => self.end_row(),
            Role::Table => {
                self.end_row();
                self.apart(2);
            }
            Role::Heading(_) => {
                self.prefix.clear();
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
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_NESTING));
        self.prefix = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}- "),
        };
    }

    fn next_cell(&mut self) {
        if self.out.len() == self.row.start {
            self.write_due();
        }
        self.due = 0;
        self.out.push_str(" |");
        self.space_due = true;
    }

    /// Ends the row that is open; below a row of headings goes the line that makes it a table.
    fn end_row(&mut self) {
        let Row { cells, headings, .. } = std::mem::take(&mut self.row);
        self.in_cell = false;
        if cells == 0 {
            return;
        }
        self.due = self.due.max(1);
        if cells > 1 && cells == headings {
            let rule = vec!["---"; cells.min(100)].join(" | ");
            self.text(&rule);
            self.due = 1;
        }
    }

    fn resolve(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_ADDRESS {
            return None;
        }
        let mut url = self.base.join(href).ok()?;
        let address = String::from(url.clone());
        let has_fragment = url.fragment().is_some();
        url.set_fragment(None);
        let is_here = has_fragment && url == self.base;
        let is_link = matches!(url.scheme(), "http" | "https" | "mailto") && address.len() <= MAX_ADDRESS;
        (is_link && !is_here).then_some(address)
    }

    /// Puts the text since the opening tag in brackets, with the address behind it.
    fn close_link(&mut self) {
        let Some(Open { start: Some(start), address: Some(address) }) = self.link.take() else { return };
        let Some(text) = self.out.get(start..).filter(|text| !self.preformatted && !text.contains('\n'))
        else {
            return;
        };
        // The `¶` beside a heading.
        if address.starts_with('#') && text.chars().count() == 1 && !text.contains(char::is_alphanumeric) {
            self.out.truncate(start);
            return;
        }
        let Some(address) = self.resolve(&address) else { return };
        self.out.insert(start, '[');
        self.out.push_str("](");
        self.out.push_str(&address);
        self.out.push(')');
    }

    fn close_code(&mut self) {
        let Some(Open { start: Some(start), .. }) = self.code.take() else { return };
        if self.out.get(start..).is_some_and(|text| !text.contains(['\n', '`'])) {
            self.out.insert(start, '`');
            self.out.push('`');
        }
    }

    fn text(&mut self, text: &str) {
        let text = &text.replace(is_invisible, "");
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
            return;
        }
        if self.skipped.is_some() {
            return;
        }
        if self.preformatted {
            self.out.push_str(text);
            return;
        }
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            self.space_due |= index > 0;
            if !word.is_empty() {
                self.write_due();
                let start = self.out.len();
                for open in [&mut self.link, &mut self.code].into_iter().flatten() {
                    open.start.get_or_insert(start);
                }
                self.out.push_str(word);
            }
        }
    }

    /// Writes what has to be there before the next text.
    fn write_due(&mut self) {
        if self.due > 0 {
            let quote = "> ".repeat(self.quotes.min(MAX_NESTING));
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
        self.out.push_str(&std::mem::take(&mut self.prefix));
    }
}
