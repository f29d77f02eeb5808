//! Finds what has no form of its own but a place in the sentence: cities, people, things.

use super::find::Found;
use super::question::Question;
use super::words::{Word, is_stop};

/// A place: a name after `in`, `for`, `at` and so on, else any name that does not begin the question.
/// With `after`, only one that follows that word.
pub(super) fn place(question: &Question<'_>, after: Option<&[&str]>) -> Option<Found> {
    const BEFORE: &[&str] =
        &["in", "for", "of", "at", "to", "from", "near", "around", "about", "city", "within", "is"];
    const NOT: &[&str] = &[
        "today",
        "tomorrow",
        "tonight",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "celsius",
        "fahrenheit",
        "kelvin",
        "metric",
        "imperial",
        "now",
        "the",
        "a",
        "an",
        "my",
        "this",
        "next",
        "that",
        "days",
        "weather",
        "time",
        "it",
        "me",
        "please",
        "i",
        "i'm",
        "here",
        "there",
        "degrees",
        "english",
        "detail",
        "and",
        "or",
        "with",
        "by",
        "week",
        "general",
        "total",
        "minutes",
        "hours",
    ];
    let before = after.unwrap_or(BEFORE);
    let named = |word: &Word| {
        question.is_free(&word.range)
            && !NOT.contains(&word.lower.as_str())
            && question.slice(&word.range).starts_with(char::is_alphabetic)
    };
    let capital = |word: &Word| question.slice(&word.range).starts_with(char::is_uppercase);
    // The words from one on that are parts of the same name: `New York`, `Rio de Janeiro`, `Stoke-on-Trent`.
    let run = |from: usize| {
        let mut words = question.words.iter().skip(from).peekable();
        let first = words.next()?;
        let mut range = first.range.clone();
        let mut reach = range.end;
        for word in words {
            let gap = question.slice(&(reach..word.range.start));
            let small =
                matches!(word.lower.as_str(), "de" | "la" | "of" | "del" | "di" | "am" | "on" | "upon");
            let joined = (gap == " " || gap == "-" || gap == ". ") && named(word) && (capital(word) || small);
            if !joined {
                break;
            }
            reach = word.range.end;
            if capital(word) {
                range.end = reach;
            }
        }
        Some((range.clone(), vec![question.slice(&range).to_owned()]))
    };
    let follows = |at: usize| {
        at.checked_sub(1)
            .and_then(|before| question.words.get(before))
            .is_some_and(|word| before.contains(&word.lower.as_str()))
    };
    let candidates = || question.words.iter().enumerate().filter(|(_, word)| named(word));
    if let Some((at, _)) = candidates().find(|&(at, word)| capital(word) && follows(at)) {
        return run(at);
    }
    if after.is_none()
        && let Some((at, _)) = candidates()
            .find(|&(at, word)| at > 0 && capital(word) && !is_stop(&word.lower) && word.lower.len() > 1)
    {
        return run(at);
    }
    // People write `weather in oslo` as well; `about` and `is` say too little there.
    let (_, word) = candidates().find(|&(at, word)| {
        follows(at)
            && !is_stop(&word.lower)
            && question
                .beside(&word.range)
                .0
                .is_some_and(|before| !matches!(before.lower.as_str(), "about" | "is"))
    })?;
    Some((word.range.clone(), vec![question.slice(&word.range).to_owned()]))
}

/// A name or the like: a word in capitals, or what follows the last preposition. `rest` is what is left of the question;
/// where that is short already, it is it.
pub(super) fn thing(question: &Question<'_>, rest: Option<&str>) -> Option<Found> {
    if let Some((range, ways)) =
        place(question, None).filter(|(_, ways)| ways.iter().any(|way| way.starts_with(char::is_uppercase)))
    {
        return Some((range, ways));
    }
    if rest.is_some_and(|rest| rest.split_whitespace().count() <= 3) {
        return None;
    }
    let free = |word: &&Word| question.is_free(&word.range);
    let words: Vec<_> = question.words.iter().filter(free).collect();
    let at = words.iter().rposition(|word| {
        matches!(word.lower.as_str(), "in" | "for" | "of" | "to" | "from" | "about" | "with")
    })?;
    let mut named = words.into_iter().skip(at + 1).skip_while(|word| is_stop(&word.lower)).take(3);
    let first = named.next()?;
    let end =
        named.take_while(|word| !is_stop(&word.lower)).last().map_or(first.range.end, |word| word.range.end);
    let range = first.range.start..end;
    question.is_free(&range).then(|| (range.clone(), vec![question.slice(&range).to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (text, want) in [
            ("What's the weather in New York tomorrow?", "New York"),
            ("weather in oslo", "oslo"),
            ("What time is it in Rio de Janeiro?", "Rio de Janeiro"),
            ("Is Oslo cold?", "Oslo"),
            ("the weather for the next days in Bergen", "Bergen"),
        ] {
            let (_, found) = place(&Question::new(text, Vec::new()), None).unwrap();
            assert_eq!(found.into_iter().next().unwrap(), want, "{text}");
        }
    }
}
