//! Tables of numbers and texts.

use quick_xml::{Reader, events::Event};

use super::{
    super::csv,
    xml::{damaged, said, value},
};

/// A row has no more cells, and a table no more rows: those of Excel.
pub(super) const MAX_CELLS: usize = 16_384;
pub(super) const MAX_ROWS: usize = 1_048_576;

/// The texts that the cells of Excel name by their numbers.
pub(super) fn strings(xml: &str) -> Result<Vec<String>, String> {
    let (mut strings, mut is_text, mut reader) = (Vec::new(), false, Reader::from_str(xml));
    loop {
        let event = reader.read_event().map_err(|error| damaged(&error))?;
        match &event {
            // How it is pronounced.
            Event::Start(start) if start.local_name().as_ref() == "rPh" => {
                reader.read_to_end(start.name()).map_err(|error| damaged(&error))?;
            }
            Event::Start(start) | Event::Empty(start) if start.local_name().as_ref() == "si" => {
                strings.push(String::new());
            }
            Event::Start(start) => is_text = start.local_name().as_ref() == "t",
            Event::End(_) => is_text = false,
            Event::Eof => return Ok(strings),
            event if is_text => {
                if let Some(last) = strings.last_mut() {
                    last.extend(said(event));
                }
            }
            _ => {}
        }
    }
}

/// A table as it is read.
pub(super) struct Sheet {
    name: String,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// The tables of a part, as CSV; of Excel one, without its name.
    pub(super) fn read(xml: &str, shared: &[String]) -> Result<Vec<(String, u32, String)>, String> {
        let mut sheets = vec![Self { name: String::new(), rows: Vec::new() }];
        let (mut cell, mut kind, mut is_value, mut times) = (None, String::new(), false, 1);
        let mut reader = Reader::from_str(xml);
        loop {
            let event = reader.read_event().map_err(|error| damaged(&error))?;
            let Some(sheet) = sheets.last_mut() else { continue };
            match &event {
                Event::Start(start) if start.local_name().as_ref() == "annotation" => {
                    reader.read_to_end(start.name()).map_err(|error| damaged(&error))?;
                }
                Event::Start(start) | Event::Empty(start) => {
                    let is_empty = matches!(event, Event::Empty(_));
                    match start.local_name().as_ref() {
                        "table" => {
                            let name = value(start, "name").unwrap_or_default();
                            sheets.push(Self { name, rows: Vec::new() });
                        }
                        "row" | "table-row" => sheet.row(value(start, "r").and_then(|at| at.parse().ok())),
                        "c" | "table-cell" => {
                            kind = value(start, "t").unwrap_or_default();
                            times = value(start, "number-columns-repeated")
                                .and_then(|times| times.parse().ok())
                                .unwrap_or(1);
                            sheet.skip_to(value(start, "r").as_deref().map(column));
                            cell = Some(String::new());
                            if is_empty {
                                sheet.cell(cell.take(), times);
                            }
                        }
                        "v" | "t" | "p" => is_value = !is_empty,
                        _ => {}
                    }
                }
                Event::End(end) => match end.local_name().as_ref() {
                    "c" | "table-cell" => {
                        let number = cell.as_ref().filter(|_| kind == "s").and_then(|text| text.parse().ok());
                        let named = number.and_then(|number: usize| shared.get(number)).cloned();
                        sheet.cell(named.or(cell.take()), times);
                        cell = None;
                    }
                    "v" | "t" | "p" => is_value = false,
                    _ => {}
                },
                Event::Eof => break,
                event if is_value => {
                    if let Some(cell) = &mut cell {
                        cell.extend(said(event));
                    }
                }
                _ => {}
            }
        }
        let mut tables = Vec::new();
        for Self { name, rows } in sheets {
            let first = rows.iter().position(|row| row.iter().any(|cell| !cell.trim().is_empty()));
            if let Some(first) = first {
                let table = csv::written(rows.get(first..).unwrap_or_default())?;
                tables.push((name, u32::try_from(first).unwrap_or_default(), table));
            }
        }
        Ok(tables)
    }

    /// Begins a row, of this number from 1 where that is said.
    fn row(&mut self, number: Option<usize>) {
        let before = number.unwrap_or(self.rows.len() + 1).saturating_sub(1).min(MAX_ROWS);
        if self.rows.len() < before {
            self.rows.resize(before, Vec::new());
        }
        self.rows.push(Vec::new());
    }

    /// Leaves out cells that are not written.
    fn skip_to(&mut self, column: Option<usize>) {
        if let (Some(column), Some(row)) = (column, self.rows.last_mut())
            && row.len() < column
        {
            row.resize(column.min(MAX_CELLS), String::new());
        }
    }

    /// Adds a cell, as often as it is said to be there: those of a formatted rest of a row, which is empty, are not counted.
    fn cell(&mut self, text: Option<String>, times: usize) {
        let (text, Some(row)) = (text.unwrap_or_default(), self.rows.last_mut()) else { return };
        let most = if text.is_empty() { 64 } else { 16 };
        for _ in 0..times.min(most).min(MAX_CELLS.saturating_sub(row.len())) {
            row.push(text.clone());
        }
    }
}

/// The number of a column from 0, as in `AB12`.
fn column(reference: &str) -> usize {
    let letters = reference.bytes().take_while(u8::is_ascii_uppercase).take(3);
    letters.fold(0, |number, letter| number * 26 + usize::from(letter - b'A') + 1).saturating_sub(1)
}
