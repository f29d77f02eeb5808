//! What a model says in one round and in the next stands apart.

/// Puts an empty line between the texts of two rounds, where the model has not done so.
#[derive(Debug, Default)]
pub(super) struct Paragraphs {
    said: bool,
    between: bool,
    /// How many line ends the text so far ends with.
    line_ends: usize,
}

impl Paragraphs {
    /// What is said from here on is another paragraph.
    pub(super) fn part(&mut self) {
        self.between = self.said;
    }

    /// The next piece of text.
    pub(super) fn join(&mut self, mut text: String) -> String {
        let words = text.trim_start_matches('\n');
        let before = self.line_ends + text.len() - words.len();
        if words.is_empty() {
            self.line_ends = before;
            return text;
        }
        self.line_ends = words.len() - words.trim_end_matches('\n').len();
        self.said |= !words.trim().is_empty();
        if std::mem::take(&mut self.between) {
            text.insert_str(0, "\n\n".get(before.min(2)..).unwrap_or_default());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Paragraphs;

    fn joined(rounds: &[&[&str]]) -> String {
        let mut paragraphs = Paragraphs::default();
        let mut all = String::new();
        for round in rounds {
            paragraphs.part();
            all.extend(round.iter().map(|text| paragraphs.join((*text).to_owned())));
        }
        all
    }

    #[test]
    fn an_empty_line_is_added_where_there_is_none() {
        assert_eq!(joined(&[&["a"], &["b", "c"]]), "a\n\nbc");
        assert_eq!(joined(&[&["a\n"], &["b"]]), "a\n\nb");
        assert_eq!(joined(&[&["a", "\n"], &["\n", "b"]]), "a\n\nb");
        assert_eq!(joined(&[&["a\n\n\n"], &["b"]]), "a\n\n\nb");
        assert_eq!(joined(&[&["\n"], &[], &["b"]]), "\nb");
    }
}
