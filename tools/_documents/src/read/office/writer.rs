//! Paragraphs, headings and tables of a text.

use std::collections::HashMap;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::xml::{damaged, elements, said, value};

/// The levels of the styles that are headings, whatever they are called in the language of the program.
pub(super) fn headings(styles: &str) -> Result<HashMap<String, u8>, String> {
    let (mut headings, mut style) = (HashMap::new(), None);
    elements(styles, |name, start| match name {
        "style" => style = value(start, "styleId"),
        "name" => {
            let name = value(start, "val").unwrap_or_default().to_ascii_lowercase();
            // Headings are below the title.
            let below = |level: &str| level.parse::<u8>().ok()?.checked_add(1);
            let level = if name == "title" { Some(1) } else { name.strip_prefix("heading ").and_then(below) };
            if let (Some(style), Some(level)) = (style.take(), level) {
                headings.insert(style, level);
            }
        }
        _ => {}
    })?;
    Ok(headings)
}

/// Writes paragraphs and tables of a text.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) lines: Vec<(u32, u8, bool, String)>,
    pub(super) headings: HashMap<String, u8>,
    pub(super) is_open_document: bool,
    pub(super) slide: Option<u32>,
    pub(super) paragraphs: u32,
    /// The paragraph that is open.
    pub(super) text: String,
    pub(super) heading: u8,
    pub(super) is_title: bool,
    pub(super) is_run: bool,
    /// The rows that are open, one in the other, with their cells.
    pub(super) rows: Vec<Vec<String>>,
}

impl Writer {
    pub(super) fn write(&mut self, xml: &str) -> Result<(), String> {
        let mut reader = Reader::from_str(xml);
        loop {
            let event = reader.read_event().map_err(|error| damaged(&error))?;
            match &event {
                // The same once more for other programs; what was deleted; what somebody remarked.
                Event::Start(start)
                    if matches!(
                        start.local_name().as_ref(),
                        "Fallback" | "tracked-changes" | "annotation"
                    ) =>
                {
                    reader.read_to_end(start.name()).map_err(|error| damaged(&error))?;
                }
                Event::Start(start) => self.begin(start),
                Event::Empty(start) => {
                    self.begin(start);
                    self.end(start.local_name().as_ref());
                }
                Event::End(end) => self.end(end.local_name().as_ref()),
                Event::Eof => return Ok(()),
                event if self.is_run || self.is_open_document => {
                    self.text.extend(said(event));
                }
                _ => {}
            }
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>) {
        match start.local_name().as_ref() {
            "p" => self.open(u8::from(self.is_title)),
            "h" => self.open(value(start, "outline-level").and_then(|level| level.parse().ok()).unwrap_or(1)),
            "pStyle" => {
                let style = value(start, "val").unwrap_or_default();
                self.heading = self.headings.get(&style).map_or(self.heading, |level| (*level).min(6));
            }
            "ph" => {
                self.is_title = value(start, "type").is_some_and(|of| matches!(&*of, "title" | "ctrTitle"))
            }
            "frame" => self.is_title = value(start, "class").is_some_and(|of| of == "title"),
            "page" => self.slide = self.slide.map(|slide| slide + 1),
            "t" => self.is_run = true,
            "tab" | "br" | "line-break" | "s" => self.text.push(' '),
            "tr" | "table-row" => self.rows.push(Vec::new()),
            "tc" | "table-cell" => {
                if let Some(row) = self.rows.last_mut() {
                    row.push(String::new());
                }
            }
            _ => {}
        }
    }

    /// Begins a paragraph. One that stands in another, as in a box, ends what there is of that.
    fn open(&mut self, heading: u8) {
        self.close();
        self.heading = heading.min(6);
        self.paragraphs += 1;
    }

    fn close(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.rows.last_mut().and_then(|row| row.last_mut()) {
            Some(cell) if cell.is_empty() => cell.extend([text.trim()]),
            Some(cell) => cell.extend([" ", text.trim()]),
            None => self.push(self.heading, false, &text),
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "t" => self.is_run = false,
            "sp" | "frame" => self.is_title = false,
            "p" | "h" => self.close(),
            "tr" | "table-row" => {
                let row = self.rows.pop().unwrap_or_default().join(" | ");
                match self.rows.last_mut().and_then(|row| row.last_mut()) {
                    Some(cell) => cell.extend([" ", &row]),
                    None => self.push(0, true, &row),
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, heading: u8, is_row: bool, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.lines.push((self.slide.unwrap_or(self.paragraphs), heading, is_row, text.to_owned()));
        }
    }
}
