//! Tables, a row at a time.

use super::Writer;

/// The row of a table that is open.
#[derive(Debug, Default)]
pub(super) struct Row {
    cells: usize,
    headings: usize,
    /// Where in the output it begins.
    start: usize,
}

impl Writer {
    /// What comes next is another table, or no table.
    pub(super) fn table(&mut self) {
        self.close_row();
        self.apart(2);
    }

    pub(super) fn open_row(&mut self) {
        self.close_row();
        self.apart(1);
        self.row.start = self.out.len();
    }

    pub(super) fn open_cell(&mut self, is_heading: bool) {
        if self.row.cells > 0 {
            self.next_cell();
        }
        self.row.cells += 1;
        self.row.headings += usize::from(is_heading);
        self.in_cell = true;
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
    pub(super) fn close_row(&mut self) {
        let Row { cells, headings, .. } = std::mem::take(&mut self.row);
        self.in_cell = false;
        if cells == 0 {
            return;
        }
        self.due = self.due.max(1);
        if cells > 1 && cells == headings {
            let rule = vec!["---"; cells.min(100)].join(" | ");
            self.mark(&rule);
            self.due = 1;
        }
    }
}
