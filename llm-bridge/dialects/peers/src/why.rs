//! Why a peer's calls are not ours, as far as that can be decided by looking at them.

mod class;
mod leaf;

use toolrack_dialects::{self, Abort, Call, Dialect, MarkKind};

pub use class::{CLASSES, Class};

use crate::{
    call::{Called, left_over, same_calls},
    case::Case,
    ours::Reading,
};

/// What a peer finds, or its error.
pub type Found = Result<Vec<Called>, String>;

/// What a peer makes of a case.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Theirs<'a> {
    /// Its calls, or its error.
    pub found: &'a Found,
    /// Where that was a stream: what it finds in the whole.
    pub whole: Option<&'a Found>,
    /// What it finds in another text.
    pub again: &'a dyn Fn(String) -> Found,
}

/// The class of a difference, or none if it takes a person to explain it. Where a test asserts, undisputed, what the
/// peer reads, no rule here excuses ours.
pub fn class(case: &Case, ours: &Reading, theirs: Theirs<'_>) -> Option<Class> {
    let expected = same_calls(&case.expected, &ours.calls);
    let Ok(calls) = theirs.found else { return Some(Class::Fails) };
    if case.nothing_offered() {
        return Some(Class::NothingOffered);
    }
    if case.asserted && !case.disputed && !expected && same_calls(&case.expected, calls) {
        return None;
    }
    let agrees = |found: &Found| found.as_ref().is_ok_and(|calls| same_calls(calls, &ours.calls));
    if theirs.whole.is_some_and(agrees) {
        return Some(Class::OwnStream);
    }
    let difference = Difference { case, ours, row: dialect::dialect(&case.dialect) };
    let by_rule = difference.by_rule(calls);
    let spaced = || difference.spaced().is_some_and(|text| agrees(&(theirs.again)(text)));
    let own_stream = || {
        let whole =
            theirs.whole.filter(|whole| whole.as_ref().is_ok_and(|whole| !same_calls(whole, calls)))?;
        class(case, ours, Theirs { found: whole, whole: None, ..theirs }).map(|_| Class::OwnStream)
    };
    by_rule
        .or_else(|| spaced().then_some(Class::Spacing))
        .or_else(|| difference.by_tests(expected))
        .or_else(own_stream)
}

struct Difference<'a> {
    case: &'a Case,
    ours: &'a Reading,
    row: Option<&'static Dialect>,
}

impl Difference<'_> {
    fn by_rule(&self, theirs: &[Called]) -> Option<Class> {
        let ours = &self.ours.calls;
        if let Some(over) = left_over(ours, theirs) {
            return self.missing(&over);
        }
        if theirs.iter().any(|call| no_name(&call.name)) {
            return Some(Class::BadName);
        }
        if let Some(over) = left_over(theirs, ours) {
            let over: Vec<&Called> = over.into_iter().filter_map(|index| theirs.get(index)).collect();
            return self.extra(&over);
        }
        if ours.len() != theirs.len() {
            return None;
        }
        let differing =
            || self.ours.raw.iter().zip(ours).zip(theirs).filter(|((_, ours), theirs)| !ours.same(theirs));
        leaf::class(self.case, ours, theirs).or_else(|| {
            if differing().all(|((call, ..), _)| self.holds_mark(call)) {
                return Some(Class::MarkInValue);
            }
            differing().all(|((call, ..), _)| call.repaired).then_some(Class::Mended)
        })
    }

    /// The peer lacks these calls.
    fn missing(&self, over: &[usize]) -> Option<Class> {
        let lacking: Vec<_> = over.iter().filter_map(|index| self.ours.raw.get(*index)).collect();
        let all = |fits: &dyn Fn(&Call) -> bool| lacking.iter().all(|call| fits(call));
        if all(&|call| !self.case.offers(&call.name)) {
            return Some(Class::UnknownDropped);
        }
        if self.ours.thought || self.case.thinking {
            return Some(Class::Thinking);
        }
        if all(&|call| call.dialect != self.case.dialect && !self.case.dialect.starts_with(call.dialect)) {
            return Some(Class::OtherDialect);
        }
        if all(&unwrapped) {
            return Some(Class::Unwrapped);
        }
        if all(&unclosed) {
            return Some(Class::MissingEnd);
        }
        if all(&|call| call.repaired) {
            return Some(Class::Mended);
        }
        all(&|call| self.holds_mark(call)).then_some(Class::MarkInValue)
    }

    /// The peer has these calls and ours has not.
    fn extra(&self, over: &[&Called]) -> Option<Class> {
        if self.ours.thought || self.case.thinking {
            return Some(Class::Thinking);
        }
        let unmarked = self.row.is_some_and(|row| row.marks.is_empty());
        if unmarked && over.iter().all(|call| !self.case.offers(&call.name)) {
            return Some(Class::UnknownUnmarked);
        }
        if self.ours.aborted.contains(&Abort::Incomplete) {
            return Some(Class::CutOff);
        }
        let (code, text) = code_and_text(&self.case.input);
        if over.iter().all(|call| code.contains(&call.name) && !text.contains(&call.name)) {
            return Some(Class::Mentioned);
        }
        if unmarked {
            return Some(Class::Unmarked);
        }
        let ends = |row: &Dialect| row.close.iter().any(|close| self.case.input.contains(close));
        if !self.row.is_some_and(ends) {
            return Some(Class::Mentioned);
        }
        self.ours.aborted.contains(&Abort::Unreadable).then_some(Class::Unreadable)
    }

    /// A mark stands in the arguments of this call.
    fn holds_mark(&self, call: &Call) -> bool {
        let marks = self
            .row
            .into_iter()
            .flat_map(|row| row.marks.iter().map(|mark| mark.text).chain(row.close.iter().copied()));
        marks.into_iter().any(|mark| call.arguments.contains(mark))
    }

    /// The input with a line end behind every opening and before every closing mark.
    fn spaced(&self) -> Option<String> {
        let mut text = self.case.input.clone();
        for mark in self.row?.marks.iter().filter(|mark| mark.kind == MarkKind::Wrapper) {
            text = text
                .replace(mark.text, &format!("{}\n", mark.text))
                .replace(&format!("{}\n\n", mark.text), &format!("{}\n", mark.text));
        }
        for close in self.row?.close {
            text = text
                .replace(close, &format!("\n{close}"))
                .replace(&format!("\n\n{close}"), &format!("\n{close}"));
        }
        (text != self.case.input).then_some(text)
    }

    /// What the tests that the case comes from say.
    fn by_tests(&self, expected: bool) -> Option<Class> {
        let ours = |(_, calls): &(String, Vec<Called>)| same_calls(calls, &self.ours.calls);
        if self.case.own {
            return None;
        }
        if self.case.disputed && (expected || self.case.also.iter().any(ours)) {
            return Some(Class::Disputed);
        }
        match (expected, self.case.asserted) {
            (true, true) => Some(Class::Asserted),
            (true, false) => Some(Class::Observed),
            (false, _) => None,
        }
    }
}

fn no_name(name: &str) -> bool {
    name.is_empty() || name.contains(['\n', '<', '>'])
}

fn unwrapped(call: &Call) -> bool {
    let marks = dialect::dialect(call.dialect).map(|row| row.marks).unwrap_or_default();
    let begins = |kind| marks.iter().any(|mark| mark.kind == kind && call.source.starts_with(mark.text));
    begins(MarkKind::Inner) && !begins(MarkKind::Wrapper)
}

fn unclosed(call: &Call) -> bool {
    let Some(row) = dialect::dialect(call.dialect) else { return false };
    let source = call.source.trim_end();
    let ends = row.close.is_empty() || row.close.iter().any(|close| source.ends_with(close));
    !call.closed || !row.marks.is_empty() && !ends
}

/// What stands between backticks, and the rest.
fn code_and_text(input: &str) -> (String, String) {
    let (mut code, mut text) = (String::new(), String::new());
    let (mut inside, mut before) = (false, ' ');
    for character in input.chars() {
        // Several in a row are one.
        inside ^= character == '`' && before != '`';
        if inside { &mut code } else { &mut text }.push(character);
        before = character;
    }
    (code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code() {
        assert_eq!(code_and_text("a `b` c"), ("`b".into(), "a ` c".into()));
        assert_eq!(code_and_text("```\nb\n```\nc"), ("```\nb\n".into(), "```\nc".into()));
    }

    #[test]
    fn every_class_is_told_once_and_in_order() {
        assert!(CLASSES.is_sorted_by(|(one, ..), (two, ..)| one < two));
        assert_eq!(CLASSES.last().map(|(class, ..)| *class), Some(Class::Disputed));
        assert_eq!(CLASSES.len(), Class::Disputed as usize + 1);
    }
}
