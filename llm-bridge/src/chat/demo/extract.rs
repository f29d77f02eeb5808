//! How one argument is looked for in the question, by what it is.

use serde_json::Value;

use super::figures::numeric;
use super::fill::{Filler, Leaf};
use super::hint::Hint;
use super::words::{is_stop, split_name, stem};
use super::{code, find, lexicon, pattern, place, recurrence, schema};

/// Words in front of what something is turned into.
const INTO: &[&str] = &["to", "in", "into", "as", "many", "much"];

/// The words that introduce an argument's text: stems of its name, which need a further sign, and words as they are
/// (`true`), which do not.
pub(super) fn introductions(leaf: &Leaf, tool: &[String]) -> Vec<(String, bool)> {
    const CALLED: &[&str] = &["called", "named", "titled", "labelled", "entitled"];
    const SAYING: &[&str] = &["saying", "says", "reading", "containing"];
    let parts = split_name(leaf.name());
    let is = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
    let mut words: Vec<(String, bool)> = Vec::new();
    if is(&["title", "name", "label", "subject"]) {
        words.extend(CALLED.iter().map(|word| ((*word).to_owned(), true)));
    }
    if is(&["body", "content", "message", "text", "description"]) {
        words.extend(SAYING.iter().map(|word| ((*word).to_owned(), true)));
    }
    if is(&["tags", "labels"]) {
        words.extend(["tagged", "labelled"].map(|word| (word.to_owned(), true)));
    }
    words.extend(leaf.name_stems().into_iter().filter(|word| !tool.contains(word)).map(|word| (word, false)));
    words
}

impl Filler<'_> {
    /// `titled Shopping`, `with body "…"`, `days: 3`, `city=Oslo`.
    pub(super) fn introduced(&mut self, at: usize) -> Option<Value> {
        let leaf = self.leaves.get(at)?;
        let words = introductions(leaf, &self.tool);
        let names = self.all_names();
        let mut found = None;
        for (nth, word) in self.question.words.iter().enumerate() {
            let introduces =
                |(text, plain): &&(String, bool)| *text == *(if *plain { &word.lower } else { &word.stem });
            let Some((_, plain)) = words.iter().find(introduces) else { continue };
            if !self.question.is_free(&word.range) || self.question.is_quoted(&word.range) {
                continue;
            }
            let after = self.question.text.get(word.range.end..).unwrap_or_default();
            let assigned =
                after.trim_start().starts_with([':', '=']) && !after.trim_start().starts_with(": //");
            let before = nth.checked_sub(1).and_then(|nth| self.question.words.get(nth));
            let joined =
                before.is_some_and(|word| matches!(word.lower.as_str(), "with" | "and" | "a" | "my"));
            let quoted = after.trim_start().starts_with(['"', '“', '«']);
            // Where something is named among others ("with 3 sides and colour red") a free text begins.
            let free =
                matches!(leaf.kind(), "string" | "array") && matches!(leaf.hint, Hint::Text | Hint::Thing);
            // "repo toolrack of owner acme": where there are several things to name, each follows its word.
            let next = self.question.beside(&word.range).1.filter(|next| {
                let names_it = leaf.name_stems().last() == Some(&word.stem) && leaf.hint == Hint::Thing;
                let touches = self.question.slice(&(word.range.end..next.range.start)) == " ";
                names_it && touches && !is_stop(&next.lower) && !names.contains(&next.stem)
            });
            if let Some(next) = next.filter(|_| {
                !assigned && !joined && !quoted && leaf.kind() == "string" && self.leaves.len() > 1
            }) {
                found = Some((word.range.start..next.range.end, self.question.slice(&next.range).to_owned()));
                break;
            }
            if !(assigned || free && (*plain || joined || quoted)) {
                continue;
            }
            let gap = after.len() - after.trim_start_matches([' ', ':', '=']).len();
            let start = word.range.end + gap;
            let opened =
                self.question.quotes.iter().find(|(_, outer)| outer.start <= start && start < outer.end);
            if let Some((inner, outer)) = opened.cloned() {
                found = Some((word.range.start..outer.end, self.question.slice(&inner).to_owned()));
                break;
            }
            let mut end = self.question.text.len();
            for (at, _) in self
                .question
                .text
                .char_indices()
                .filter(|(at, c)| *at >= start && matches!(c, '.' | ';' | '?' | '!' | '\n'))
            {
                let next = self.question.text.get(at + 1..).and_then(|text| text.chars().next());
                if next.is_none_or(char::is_whitespace) {
                    end = end.min(at);
                }
            }
            let last = self.question.words.iter().find(|other| {
                other.range.start > start
                    && (names.contains(&other.stem)
                        || names.contains(&other.lower)
                        || !self.question.is_free(&other.range))
            });
            end = end.min(last.map_or(end, |word| word.range.start));
            let text = trim_joint(self.question.text.get(start..end).unwrap_or_default());
            let text = if leaf.kind() == "array" {
                let ends = [" for ", " at ", " on ", " from "].iter().filter_map(|word| text.find(word));
                ends.min().and_then(|end| text.get(..end)).unwrap_or(text)
            } else {
                text
            };
            if !text.is_empty() {
                found = Some((word.range.start..start + text.len(), text.to_owned()));
                break;
            }
        }
        let (range, text) = found?;
        let value = match leaf.kind() {
            "string" => Value::String(text),
            "array" => Value::Array(split_list(&text).into_iter().map(Value::String).collect()),
            _ => serde_json::from_str(text.split([',', ' ']).next()?).ok()?,
        };
        self.accepts(at, &value).then(|| self.question.take(range))?;
        Some(value)
    }

    /// A value out of a list, where its words or another name of it occur.
    pub(super) fn one_of(&mut self, at: usize) -> Option<Value> {
        let leaf = self.leaves.get(at)?;
        let choices = self.choices(&leaf.schema);
        let first = split_name(leaf.name()).into_iter().next().unwrap_or_default();
        let wants_target = matches!(first.as_str(), "to" | "target" | "into" | "destination" | "output");
        let wants_source = matches!(first.as_str(), "from" | "source" | "base" | "input");
        let mut best: Option<((i32, usize), std::ops::Range<usize>, Value)> = None;
        for choice in choices {
            let Some(text) = choice.as_str() else { continue };
            for range in self.occurrences(text) {
                let before = self.question.beside(&range).0;
                let target = before.is_some_and(|word| INTO.contains(&word.lower.as_str()));
                let counted =
                    before.is_some_and(|word| {
                        word.lower.starts_with(|c: char| c.is_ascii_digit()) || word.lower == "from"
                    }) || self.question.numbers().iter().any(|number| number.range.end == range.start);
                let rank = if wants_target {
                    i32::from(target) * 2 - i32::from(counted)
                } else if wants_source {
                    i32::from(counted) * 2 - i32::from(target)
                } else {
                    0
                };
                let key = (rank, range.len());
                if best.as_ref().is_none_or(|(other, ..)| key > *other) {
                    best = Some((key, range, choice.clone()));
                }
            }
        }
        let ((rank, _), range, value) = best?;
        if rank < 0 && !leaf.required {
            return None;
        }
        self.question.take(range);
        Some(value)
    }

    fn choices(&self, of: &Value) -> Vec<Value> {
        let mut choices = Vec::new();
        for flat in schema::expand(self.root(), of) {
            choices.extend(flat.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
            choices.extend(flat.get("const").cloned());
        }
        choices
    }

    fn occurrences(&self, value: &str) -> Vec<std::ops::Range<usize>> {
        let parts = split_name(value);
        let mut found = Vec::new();
        // A letter or a word like "in" means something else nearly always, unless it is written as the value is.
        let telling = parts.iter().any(|part| part.chars().count() > 1 && !is_stop(part));
        let stems: Vec<String> = parts.iter().map(|part| stem(part)).collect();
        found.extend(
            self.question
                .sequence(&stems)
                .into_iter()
                .filter(|range| telling || self.question.slice(range) == value),
        );
        for alias in lexicon::aliases(value) {
            found.extend(self.question.sequence(&[alias]));
        }
        found
    }

    /// What has a form of its own: an address, a date, a sum, the name of a language.
    pub(super) fn formed(&mut self, at: usize) -> Option<Value> {
        let leaf =
            self.leaves.get(at).filter(|leaf| leaf.kind() == "string" && !leaf.flat.contains_key("enum"))?;
        let question = &self.question;
        let found = match leaf.hint {
            Hint::Url => find::url(question),
            Hint::Email => find::email(question),
            Hint::Zone => find::zone(question),
            Hint::Time => find::time(question).or_else(|| find::date(question)),
            Hint::Date => find::date(question),
            Hint::Moment => moment(question),
            Hint::Path => find::path(question),
            Hint::Sum => find::sum(question),
            Hint::Language => self.language(leaf),
            Hint::Currency => self.currency(leaf),
            Hint::Code => code::program(question),
            Hint::Sql => code::select(question),
            Hint::Recurrence => recurrence::recurrence(question),
            Hint::Tool => find::identifier(question),
            Hint::Place | Hint::Thing | Hint::Text => None,
        }?;
        self.accept(at, found)
    }

    fn language(&self, leaf: &Leaf) -> Option<find::Found> {
        let description = leaf.flat.get("description").and_then(Value::as_str).unwrap_or_default();
        let code =
            description.contains("code") || description.contains("ISO 639") || leaf.name().contains("code");
        let source = split_name(leaf.name()).iter().any(|part| matches!(part.as_str(), "source" | "from"));
        let all = lexicon::LANGUAGES.iter().flat_map(|(short, name)| {
            let ways = if code {
                vec![(*short).to_owned(), (*name).to_owned()]
            } else {
                vec![(*name).to_owned(), (*short).to_owned()]
            };
            let stems = [stem(&name.to_lowercase())];
            self.question.sequence(&stems).into_iter().map(move |range| (range, ways.clone()))
        });
        all.max_by_key(|(range, _)| {
            let before = self.question.beside(range).0.map(|word| word.lower.as_str());
            let target = before.is_some_and(|word| INTO.contains(&word));
            (target != source, !self.question.is_quoted(range))
        })
    }

    fn currency(&self, leaf: &Leaf) -> Option<find::Found> {
        let target = split_name(leaf.name()).iter().any(|part| matches!(part.as_str(), "to" | "target"));
        let all = lexicon::CURRENCIES.iter().flat_map(|(code, names)| {
            names
                .iter()
                .flat_map(|name| self.question.sequence(&[(*name).to_owned()]))
                .map(|range| (range, vec![(*code).to_owned()]))
        });
        all.max_by_key(|(range, _)| {
            let before = self.question.beside(range).0.map(|word| word.lower.as_str());
            before.is_some_and(|word| INTO.contains(&word)) == target
        })
    }

    /// A place, which is told by where it stands in the sentence.
    pub(super) fn placed(&mut self, at: usize) -> Option<Value> {
        let leaf =
            self.leaves.get(at).filter(|leaf| leaf.kind() == "string" && !leaf.flat.contains_key("enum"))?;
        let parts = split_name(leaf.name());
        let is = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
        let after: Option<&[&str]> = if is(&["from", "origin", "departure", "source", "start"]) {
            Some(&["from", "between"])
        } else if is(&["to", "destination", "arrival", "end"]) {
            Some(&["to", "into", "and"])
        } else {
            None
        };
        let place = matches!(leaf.hint, Hint::Place | Hint::Zone);
        let found = place::place(&self.question, after.filter(|_| place)).filter(|_| place)?;
        self.accept(at, found)
    }

    /// Several values.
    pub(super) fn list(&mut self, at: usize) -> Option<Value> {
        let leaf = self.leaves.get(at).filter(|leaf| leaf.kind() == "array")?;
        let item = schema::item_of(&leaf.flat, 0).cloned().unwrap_or(Value::Bool(true));
        let flat = schema::expand(self.root(), &item).into_iter().next()?;
        let choices = self.choices(&item);
        let mut parts: Vec<(std::ops::Range<usize>, Value)> = Vec::new();
        if !choices.is_empty() {
            for choice in choices {
                let range = choice.as_str().and_then(|text| self.occurrences(text).into_iter().next());
                parts.extend(range.map(|range| (range, choice.clone())));
            }
        } else if numeric(schema::kind(&flat)) {
            if leaf.required || !self.has_required_text() {
                parts =
                    self.question.numbers().into_iter().map(|n| (n.range, schema::number(n.value))).collect();
            }
        } else if schema::kind(&flat) == "string" {
            let tags = split_name(leaf.name()).iter().any(|part| matches!(part.as_str(), "tags" | "labels"));
            let hash = |start: usize| {
                tags && self.question.text.get(..start).is_some_and(|text| text.ends_with('#'))
            };
            for word in self.question.words.iter().filter(|word| hash(word.range.start)) {
                parts.push((
                    word.range.start - 1..word.range.end,
                    Value::String(self.question.slice(&word.range).to_owned()),
                ));
            }
            let hint = leaf.hint;
            let next = |question: &super::question::Question<'_>| match hint {
                Hint::Url => find::url(question),
                Hint::Email => find::email(question),
                Hint::Path => find::path(question),
                Hint::Place => place::place(question, None),
                Hint::Thing => place::place(question, None)
                    .filter(|(_, ways)| ways.iter().any(|way| way.starts_with(char::is_uppercase))),
                _ => None,
            };
            let mut question = self.question.clone();
            while let Some((range, ways)) = next(&question) {
                question.take(range.clone());
                parts.extend(ways.into_iter().next().map(|text| (range, Value::String(text))));
            }
            if parts.is_empty() && leaf.required && !self.has_required_text() {
                let quotes = self.question.quotes.iter().filter(|(_, outer)| self.question.is_free(outer));
                parts.extend(quotes.map(|(inner, outer)| {
                    (outer.clone(), Value::String(self.question.slice(inner).to_owned()))
                }));
            }
            if parts.is_empty() && leaf.required && !self.has_required_text() {
                let (range, text) = self.question.rest(&[])?;
                parts.extend(split_list(&text).into_iter().map(|text| (range.clone(), Value::String(text))));
            }
        }
        parts.sort_by_key(|(range, _)| range.start);
        let value = Value::Array(parts.iter().map(|(_, value)| value.clone()).collect());
        if parts.is_empty() || !self.accepts(at, &value) {
            return None;
        }
        parts.into_iter().for_each(|(range, _)| self.question.take(range));
        Some(value)
    }

    /// Yes where its word occurs, no where a "no" or "without" stands before it.
    pub(super) fn flag(&mut self, at: usize) -> Option<Value> {
        let leaf = self.leaves.get(at).filter(|leaf| leaf.kind() == "boolean")?;
        let parts = split_name(leaf.name());
        // A switch is spoken of by its two ends.
        if parts
            .iter()
            .any(|part| matches!(part.as_str(), "on" | "enabled" | "enable" | "active" | "state" | "power"))
        {
            let end = self.question.words.iter().find_map(|word| match word.lower.as_str() {
                "off" | "disable" | "deactivate" => Some((word.range.clone(), false)),
                "on" | "enable" | "activate" => Some((word.range.clone(), true)),
                _ => None,
            });
            if let Some((range, on)) = end {
                self.question.take(range);
                return Some(Value::Bool(on));
            }
        }
        let names = leaf.name_stems();
        let said = self.question.words.iter().find(|word| {
            names.contains(&word.stem)
                && !self.tool.contains(&word.stem)
                && self.question.is_free(&word.range)
        })?;
        let before =
            self.question.words.iter().rev().filter(|word| word.range.end <= said.range.start).take(2);
        let no = before.into_iter().any(|word| {
            matches!(word.lower.as_str(), "no" | "not" | "without" | "don't" | "disable" | "skip" | "never")
        });
        let range = said.range.clone();
        self.question.take(range);
        Some(Value::Bool(!no))
    }

    /// The part of the question that has the form the schema asks for.
    pub(super) fn matching(&mut self, at: usize) -> Option<Value> {
        let leaf = self.leaves.get(at).filter(|leaf| leaf.kind() == "string")?;
        let wanted = leaf.flat.get("pattern").and_then(Value::as_str)?;
        if pattern::fits(wanted, self.question.text) {
            return None;
        }
        // A pattern that takes any word would take "the" of "delete the note milk".
        let range = pattern::parts(wanted, self.question.text)
            .into_iter()
            .find(|range| self.question.is_free(range) && !self.question.only_leads_up(range))?;
        let text = self.question.text.get(range.clone())?.to_owned();
        self.accept(at, (range, vec![text]))
    }
}

fn moment(question: &super::question::Question<'_>) -> Option<find::Found> {
    let date = find::date(question);
    let Some((time_at, times)) = find::time(question) else { return date };
    let Some((date_at, dates)) = date else { return Some((time_at, times)) };
    let range = date_at.start.min(time_at.start)..date_at.end.max(time_at.end);
    let day = dates.first()?;
    let mut ways: Vec<String> = times.iter().rev().take(1).map(|time| format!("{day}T{time}")).collect();
    ways.push(question.slice(&range).to_owned());
    Some((range, ways))
}

/// Cuts `a, b and c` into its three.
fn split_list(text: &str) -> Vec<String> {
    let text = text.replace(" and ", ",").replace(';', ",");
    let parts = text.split(',').map(|part| part.trim().trim_matches(['"', '\'', '#', '[', ']']).trim());
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Takes off the words that lead over to the next argument.
fn trim_joint(text: &str) -> &str {
    let mut text = text.trim_end_matches([' ', ',', ':']);
    loop {
        let shorter =
            [" and", " with", " the", " a", ",", " please", " in", " to", " for", " on", " at", " from"]
                .iter()
                .find_map(|joint| text.strip_suffix(joint));
        match shorter {
            Some(shorter) => text = shorter.trim_end(),
            None => return text.trim_end(),
        }
    }
}
