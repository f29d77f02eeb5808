//! What is put around the text of a line: links and code.

use super::Writer;

/// A longer address is left out.
const MAX_ADDRESS: usize = 2000;

/// Something that is put around text when it ends, if there was any.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) start: Option<usize>,
    address: Option<String>,
}

impl Writer {
    pub(super) fn open_link(&mut self, address: Option<String>) {
        self.close_link();
        self.link = Some(Open { start: None, address });
    }

    pub(super) fn resolve(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_ADDRESS {
            return None;
        }
        let base = self.base.as_ref()?;
        let mut url = base.join(href).ok()?;
        let address = String::from(url.clone());
        let has_fragment = url.fragment().is_some();
        url.set_fragment(None);
        let is_here = has_fragment && url == *base;
        let is_link = matches!(url.scheme(), "http" | "https" | "mailto") && address.len() <= MAX_ADDRESS;
        (is_link && !is_here).then_some(address)
    }

    /// Puts the text since the opening tag in brackets, with the address behind it.
    pub(super) fn close_link(&mut self) {
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

    pub(super) fn close_code(&mut self) {
        let Some(Open { start: Some(start), .. }) = self.code.take() else { return };
        if self.marks() && self.out.get(start..).is_some_and(|text| !text.contains(['\n', '`'])) {
            self.out.insert(start, '`');
            self.out.push('`');
        }
    }
}
