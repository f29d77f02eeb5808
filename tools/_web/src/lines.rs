//! The lines of a text, and where in the source they are from.

use crate::Line;

/// Where a line of the output begins, and what it is.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) at: usize,
    pub(crate) number: u32,
    pub(crate) heading: u8,
    pub(crate) verbatim: bool,
}

/// Cuts what was written into lines.
pub(crate) fn lines(written: &str, starts: &[Start]) -> Vec<Line> {
    let mut lines = Vec::new();
    let ends = starts.iter().skip(1).map(|start| start.at).chain([written.len()]);
    for (start, end) in starts.iter().zip(ends) {
        let written = written.get(start.at..end).unwrap_or_default();
        let text = written.trim_end();
        let Start { number, heading, verbatim, .. } = *start;
        if !text.is_empty() {
            lines.push(Line { number, text: text.to_owned(), heading, verbatim });
        }
        if written.ends_with("\n\n") {
            lines.push(Line::text(number, ""));
        }
    }
    lines
}

/// Counts lines up to a place. Places come in their order.
#[derive(Debug)]
pub(crate) struct Newlines<'h> {
    html: &'h [u8],
    at: usize,
    line: u32,
}

impl<'h> Newlines<'h> {
    pub(crate) fn new(html: &'h str) -> Self {
        Self { html: html.as_bytes(), at: 0, line: 1 }
    }

    pub(crate) fn line_of(&mut self, place: usize) -> u32 {
        let between = self.html.get(self.at..place).unwrap_or_default();
        self.line += u32::try_from(between.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(0);
        self.at = self.at.max(place);
        self.line
    }
}
