//! HTML: the text that people see, with its headings. One pass over the tokens, without a tree, so that no page can make it slow or deep.

use html5gum::{Token, Tokenizer, emitters::default::DefaultEmitter};
use serde_json::{Map, Value};

use super::Text;
use crate::document::Line;

pub(super) fn read(html: &str) -> Text {
    let page = Page::read(html, true);
    // A page whose navigation never closes has nothing else.
    let page = if page.lines.is_empty() { Page::read(html, false) } else { page };
    let first_heading = page.lines.iter().find(|line| line.heading == 1).map(|line| line.text.clone());
    let title = one_line(&page.title);
    Text {
        title: Some(title).filter(|title| !title.is_empty()).or(first_heading),
        language: page.language,
        metadata: page.metadata,
        lines: page.lines,
    }
}

#[derive(Default)]
struct Page {
    skips_around: bool,
    lines: Vec<Line>,
    title: String,
    language: Option<String>,
    metadata: Map<String, Value>,
    /// The line that is being written, where it began, and the heading it is.
    line: String,
    number: u32,
    heading: u8,
    in_title: bool,
    preformatted: bool,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
}

impl Page {
    fn read(html: &str, skips_around: bool) -> Self {
        let mut page = Self { skips_around, number: 1, ..Self::default() };
        let mut emitter = DefaultEmitter::<usize>::new_with_span();
        // Without it the code of a script would be read as markup.
        emitter.naively_switch_states(true);
        let mut place = Place { html: html.as_bytes(), at: 0, line: 1 };
        for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
            match token {
                Token::StartTag(tag) => {
                    let number = place.line_of(tag.span.start);
                    let attribute = |name: &str| {
                        let value = tag.attributes.get(name.as_bytes())?;
                        Some(String::from_utf8_lossy(value).into_owned())
                    };
                    page.open(&String::from_utf8_lossy(&tag.name), number, attribute);
                }
                Token::EndTag(tag) => page.close(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => {
                    let number = place.line_of(text.span.start);
                    page.text(&String::from_utf8_lossy(&text), number);
                }
                _ => {}
            }
        }
        page.end_line();
        page
    }

    fn open(&mut self, name: &str, number: u32, attribute: impl Fn(&str) -> Option<String>) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name);
            return;
        }
        match name {
            "html" => self.language = attribute("lang").map(|lang| lang.trim().to_owned()),
            "title" => self.in_title = self.title.is_empty(),
            "meta" => {
                let known = attribute("name")
                    .filter(|name| matches!(name.as_str(), "author" | "description" | "keywords" | "date"));
                if let (Some(name), Some(content)) = (known, attribute("content")) {
                    self.metadata.insert(name, one_line(&content).into());
                }
            }
            _ if is_unread(name) || is_hidden(name, &attribute) || self.skips_around && is_around(name) => {
                self.skipped = Some((name.to_owned(), 1));
            }
            "td" | "th" if !self.line.is_empty() => self.line.push_str(" | "),
            _ if is_apart(name) => self.end_line(),
            _ => {}
        }
        if let Some(level) = level(name) {
            self.heading = level;
        }
        if name == "pre" {
            self.preformatted = true;
        }
        if self.line.is_empty() {
            self.number = number;
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
        if name == "title" {
            self.in_title = false;
        }
        if is_apart(name) {
            self.end_line();
        }
        if level(name).is_some() {
            self.heading = 0;
        }
        if name == "pre" {
            self.preformatted = false;
        }
        if is_paragraph(name)
            && self.lines.last().is_some_and(|line| line.heading == 0 && !line.text.is_empty())
        {
            self.lines.push(Line::text(self.number, ""));
        }
    }

    fn text(&mut self, text: &str, number: u32) {
        if self.in_title {
            self.title.push_str(text);
        } else if self.skipped.is_none() && self.preformatted {
            for (line, number) in text.split('\n').zip(number..) {
                if number > self.number || self.line.is_empty() {
                    self.end_line();
                    self.number = number;
                }
                self.line.push_str(line);
            }
        } else if self.skipped.is_none() {
            let leading = text.chars().take_while(|c| c.is_whitespace()).filter(|c| *c == '\n').count();
            if self.line.trim().is_empty() {
                self.number = number.saturating_add(u32::try_from(leading).unwrap_or(0));
            }
            self.line.push_str(text);
        }
    }

    fn end_line(&mut self) {
        let text = match self.preformatted {
            true => std::mem::take(&mut self.line).trim_end().to_owned(),
            false => one_line(&std::mem::take(&mut self.line)),
        };
        if !text.is_empty() {
            self.lines.push(Line {
                number: self.number,
                text,
                heading: self.heading,
                verbatim: self.preformatted,
            });
        }
    }
}

/// Counts lines up to a place. Places come in their order.
struct Place<'h> {
    html: &'h [u8],
    at: usize,
    line: u32,
}

impl Place<'_> {
    fn line_of(&mut self, place: usize) -> u32 {
        let between = self.html.get(self.at..place).unwrap_or_default();
        self.line += u32::try_from(between.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(0);
        self.at = self.at.max(place);
        self.line
    }
}

fn one_line(text: &str) -> String {
    let is_invisible = |c| matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    text.replace(is_invisible, "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn level(name: &str) -> Option<u8> {
    name.strip_prefix('h')?.parse().ok().filter(|level| (1..=6).contains(level))
}

/// Never text.
fn is_unread(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "button"
            | "textarea"
            | "dialog"
            | "datalist"
    )
}

/// Around the text of the page.
fn is_around(name: &str) -> bool {
    matches!(name, "nav" | "aside" | "footer" | "menu")
}

/// What people do not see may be meant for a model. Elements that need not end would take the rest of the page along.
fn is_hidden(name: &str, attribute: impl Fn(&str) -> Option<String>) -> bool {
    let hides = |style: String| {
        let style: String = style.to_ascii_lowercase().split_whitespace().collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    matches!(
        name,
        "div"
            | "span"
            | "section"
            | "article"
            | "ul"
            | "ol"
            | "table"
            | "a"
            | "b"
            | "i"
            | "em"
            | "strong"
            | "details"
            | "figure"
    ) && (attribute("hidden").is_some() || attribute("style").is_some_and(hides))
}

/// On lines of its own.
fn is_apart(name: &str) -> bool {
    is_paragraph(name)
        || matches!(
            name,
            "br" | "li"
                | "tr"
                | "dt"
                | "dd"
                | "div"
                | "section"
                | "article"
                | "main"
                | "header"
                | "body"
                | "hr"
                | "summary"
                | "details"
                | "figcaption"
                | "caption"
                | "form"
                | "thead"
                | "tbody"
        )
}

/// With space behind it.
fn is_paragraph(name: &str) -> bool {
    level(name).is_some()
        || matches!(name, "p" | "ul" | "ol" | "dl" | "table" | "pre" | "blockquote" | "figure")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> Vec<String> {
        let lines = read(html).lines.into_iter().filter(|line| !line.text.is_empty());
        lines
            .map(|line| format!("{}{} {}", "#".repeat(line.heading.into()), line.number, line.text))
            .collect()
    }

    #[test]
    fn p6_html_is_text_with_headings_and_lines() {
        assert_eq!(
            shown(
                "<title>T</title>\n<h1>A\n<b>b</b></h1>\n<p>One\n two</p><p>\nthree<br>four\n<ul>\n<li>x<li>y</ul>\n<h2>C</h2><table><tr><td>1<td>2</table>"
            ),
            ["#2 A b", "4 One two", "6 three", "6 four", "8 x", "8 y", "##9 C", "9 1 | 2"]
        );
        assert_eq!(shown("a\n<pre>x\n  y\n\nz</pre>b"), ["1 a", "2 x", "3   y", "5 z", "5 b"]);
        assert_eq!(shown("caf&eacute; &lt;b&gt;"), ["1 café <b>"]);
    }

    #[test]
    fn p6_what_people_do_not_see_is_left_out() {
        for html in [
            "<script>if (a < b) { x('<p>no</p>') }</script>yes",
            "<style>p{}</style>yes<noscript>no</noscript>",
            "<nav><ul><li>no</ul><nav>no</nav></nav>yes<footer>no</footer>",
            "<div hidden>no<div>no</div></div>yes<span style='DISPLAY : none'>no</span>",
            "<!-- no -->y&shy;es<template>no</template>",
        ] {
            assert_eq!(shown(html), ["1 yes"], "{html}");
        }
        assert_eq!(shown("<nav>all there is"), ["1 all there is"]);
    }

    #[test]
    fn p6_a_page_says_what_it_is() {
        let text = read(
            "<html lang=de><title>A &amp;\n b</title><meta name=author content=Ada><meta name=viewport content=x><h1>H</h1>",
        );
        assert_eq!((text.title.as_deref(), text.language.as_deref()), (Some("A & b"), Some("de")));
        assert_eq!(Value::Object(text.metadata), serde_json::json!({"author": "Ada"}));
        assert_eq!(read("<h1>H</h1>").title.as_deref(), Some("H"));
    }

    #[test]
    fn p6_no_page_is_slow_or_deep() {
        for piece in [
            "<div>",
            "<ul><li>x",
            "</div>",
            "<pre>\n",
            "<table><tr><td>",
            "<nav>",
            "&lt;",
            "<!--",
            "<x a=b ",
            "<h1>x</h2>",
        ] {
            read(&piece.repeat(10_000));
        }
    }
}
