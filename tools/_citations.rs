//! Numbers in brackets, and the passages that they stand for.

use registry_core::prelude::*;
use toolrack_documents::Passage;

/// A passage that is cited.
#[output]
#[derive(Debug)]
pub(crate) struct Source {
    /// The number by which it is cited.
    pub(crate) number: u32,
    /// The document's path.
    pub(crate) source: String,
    /// The headings above the passage.
    pub(crate) section: String,
    /// Its lines, or its page.
    pub(crate) place: String,
}

/// The answer without numbers that stand for nothing, and the sources that it cites. The number of a passage is its place in the list,
/// from 1.
pub(crate) fn cited(answer: &str, passages: &[Passage]) -> (String, Vec<Source>) {
    let mut written = String::new();
    let mut used = Vec::new();
    let mut rest = answer;
    while let Some((before, behind)) = rest.split_once('[') {
        written.push_str(before);
        match behind.split_once(']').and_then(|(inside, behind)| Some((numbers(inside)?, behind))) {
            Some((mut numbers, behind)) => {
                numbers.retain(|number| (1..=passages.len()).contains(number));
                let shown: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                match shown.is_empty() {
                    true => written.truncate(written.trim_end_matches(' ').len()),
                    false => written.push_str(&format!("[{}]", shown.join(", "))),
                }
                used.extend(numbers);
                rest = behind;
            }
            None => {
                written.push('[');
                rest = behind;
            }
        }
    }
    written.push_str(rest);
    let sources = passages.iter().zip(1..).filter(|(_, number)| used.contains(number));
    let sources = sources.map(|(passage, number)| Source {
        number: u32::try_from(number).unwrap_or(u32::MAX),
        source: passage.path.clone(),
        section: passage.section.clone(),
        place: passage.place(),
    });
    (written, sources.collect())
}

/// `1` or `1, 2`; `None` where something else stands in the brackets.
fn numbers(inside: &str) -> Option<Vec<usize>> {
    inside.split(',').map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use toolrack_documents::DocumentKind;

    use super::*;

    #[test]
    fn p6_a_citation_of_nothing_is_taken_out() {
        let passage = |path: &str| Passage {
            path: path.to_owned(),
            title: String::new(),
            kind: DocumentKind::Text,
            section: String::new(),
            first: 1,
            last: 2,
            score: 1.0,
            text: String::new(),
            also_in: Vec::new(),
        };
        let passages = [passage("a"), passage("b"), passage("c")];
        for (answer, written, used) in [
            ("One [1], two [3, 1].", "One [1], two [3, 1].", &[1, 3][..]),
            ("None [4] and [0].", "None and.", &[]),
            ("Mixed [2, 9].", "Mixed [2].", &[2]),
            ("A list[i], [x](y) and [open", "A list[i], [x](y) and [open", &[]),
            ("[[2]]", "[[2]]", &[2]),
            ("", "", &[]),
        ] {
            let (text, sources) = cited(answer, &passages);
            let numbers: Vec<u32> = sources.iter().map(|source| source.number).collect();
            assert_eq!((text.as_str(), numbers.as_slice()), (written, used), "{answer}");
        }
    }
}
