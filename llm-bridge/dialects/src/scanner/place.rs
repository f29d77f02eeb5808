//! Where in the text the scanner is, and what stood before.

/// Where in the text we are; decides what may begin here.
#[derive(Debug)]
pub(super) struct Place {
    /// Only white space since the line's start, or since a call or thinking ended.
    pub(super) fresh: bool,
    /// Nothing at all since the line's start, not even white space. Thinking counts as nothing.
    pub(super) margin: bool,
    /// Only white space since the answer's start, thinking not counted.
    pub(super) blank: bool,
    /// Only white space since a call.
    pub(super) after_call: bool,
    /// White space here belongs to a thinking delimiter.
    pub(super) framing: bool,
    /// After an opening backtick, in what may be inline code; that ends with the line.
    pub(super) code: bool,
    /// The number of backticks (or tildes) of the code fence we are in, or 0.
    pub(super) fence: usize,
    pub(super) fence_mark: u8,
    /// On a line of a quoted block of Markdown.
    pub(super) quote_line: bool,
    /// The last text.
    pub(super) last: Last,
}

impl Place {
    pub(super) fn start() -> Self {
        Self {
            fresh: true,
            margin: true,
            blank: true,
            after_call: false,
            framing: false,
            code: false,
            fence: 0,
            fence_mark: b'`',
            quote_line: false,
            last: Last::START,
        }
    }

    /// A line begins.
    pub(super) fn next_line(&mut self) {
        self.fresh = true;
        self.margin = true;
        self.code = false;
        self.quote_line = false;
    }

    /// Where thinking has ended.
    pub(super) fn after_thinking(&self, opening: &Opening) -> Self {
        let Opening { margin, spaced } = *opening;
        Self { framing: spaced, fresh: spaced, blank: self.blank, margin, ..Self::start() }
    }

    /// Directly after what opens a quote, or code.
    pub(super) fn quoted(&self) -> bool {
        self.quote_line || self.last.opens_quote() || self.last.opens_code()
    }
}

/// The last bytes of text, the newest in the lowest place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last(u64);

impl Last {
    /// As at the beginning of a line.
    const START: Self = Self(u64::from_be_bytes([b'\n'; 8]));

    /// The last bytes when this has followed.
    pub(super) fn with(self, text: &str) -> Self {
        let text = text.as_bytes();
        Self(match text.last_chunk() {
            Some(last) => u64::from_be_bytes(*last),
            None => text.iter().fold(self.0, |last, byte| last << 8 | u64::from(*byte)),
        })
    }

    pub(super) fn byte(self) -> u8 {
        let [.., last] = self.0.to_be_bytes();
        last
    }

    /// Within a sentence, after a word.
    pub(super) fn is_in_sentence(self) -> bool {
        let [.., before, last] = self.0.to_be_bytes();
        last == b'('
            || last == b' '
                && (before.is_ascii_alphanumeric() || b",;".contains(&before) || !before.is_ascii())
    }

    pub(super) fn opens_quote(self) -> bool {
        let last = self.0.to_be_bytes();
        let [.., before, quote] = last;
        let opens = before.is_ascii_whitespace() || matches!(before, b'(' | b'[' | b':');
        opens && matches!(quote, b'"' | b'\'')
            || ["“", "«"].iter().any(|quote| last.ends_with(quote.as_bytes()))
    }

    /// An element of HTML that shows what is in it, or a comment.
    pub(super) fn opens_code(self) -> bool {
        let last = self.0.to_be_bytes();
        let text = last.trim_ascii_end();
        ["<code>", "<pre>", "<!--"].iter().any(|opening| text.ends_with(opening.as_bytes()))
    }
}

/// What stands before thinking: the text after it goes on there.
#[derive(Debug)]
pub(super) struct Opening {
    /// Nothing, on its line.
    pub(super) margin: bool,
    /// White space, or nothing: white space after the thinking is framing.
    pub(super) spaced: bool,
}

impl Opening {
    pub(super) const START: Self = Self { margin: true, spaced: true };
}
