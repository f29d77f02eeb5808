//! Puts ranked lists together.

use std::collections::HashMap;

use super::Passage;

/// How little the first places count before the next: the value of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
/// Condorcet and individual Rank Learning Methods" (SIGIR 2009).
const K: f64 = 60.0;

/// So many copies of a passage are named.
const COPIES: usize = 5;

/// The best passages of all lists by reciprocal rank fusion: a passage's score is the sum of 1 / (60 + its rank) over the lists that it is
/// in, the first rank being 1. The scores within the lists do not matter, so they need not be of one kind. Of passages of one score, those of
/// earlier lists come first. Copies, which say the same under the same headings, count as one.
pub fn reciprocal_rank_fusion(lists: impl IntoIterator<Item = Vec<Passage>>, limit: usize) -> Vec<Passage> {
    let mut fused = Distinct::default();
    for list in lists {
        for (rank, passage) in (1_u32..).zip(without_copies(list)) {
            let score = 1.0 / (K + f64::from(rank));
            fused.add(Passage { score, ..passage }, |known| known.score += score);
        }
    }
    let mut passages = fused.passages;
    passages.sort_by(|one, other| other.score.total_cmp(&one.score));
    passages.truncate(limit);
    passages
}

/// The first of those that say the same, with the paths of the others.
pub(super) fn without_copies(list: Vec<Passage>) -> Vec<Passage> {
    let mut distinct = Distinct::default();
    for passage in list {
        distinct.add(passage, |_| {});
    }
    distinct.passages
}

/// Passages that each say something else.
#[derive(Default)]
struct Distinct {
    passages: Vec<Passage>,
    /// Where each is, by its headings and its words.
    known: HashMap<(String, String), usize>,
}

impl Distinct {
    /// Adds a passage, or changes the one that says the same.
    fn add(&mut self, passage: Passage, change: impl FnOnce(&mut Passage)) {
        let words = passage.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = *self.known.entry((passage.section.clone(), words)).or_insert(self.passages.len());
        match self.passages.get_mut(at) {
            Some(known) => {
                change(known);
                for path in [passage.path].into_iter().chain(passage.also_in) {
                    if known.also_in.len() < COPIES && path != known.path && !known.also_in.contains(&path) {
                        known.also_in.push(path);
                    }
                }
            }
            None => self.passages.push(passage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentKind;

    fn list(texts: &str) -> Vec<Passage> {
        let passage = |text: char| Passage {
            path: "a.pdf".into(),
            title: "A".into(),
            kind: DocumentKind::Pdf,
            section: String::new(),
            first: 1,
            last: 1,
            score: 1000.0,
            text: text.into(),
            also_in: Vec::new(),
        };
        texts.chars().map(passage).collect()
    }

    fn order(passages: &[Passage]) -> String {
        passages.iter().map(|passage| passage.text.as_str()).collect()
    }

    #[test]
    fn p6_what_both_lists_have_goes_before_what_one_has() {
        // a: 1/61 + 1/64, b: 1/62 + 1/61, c: 1/63, x: 1/62, y: 1/63
        let found = reciprocal_rank_fusion([list("abc"), list("bxya")], 9);
        assert_eq!(order(&found), "baxcy");
        assert!((found[0].score - (1.0 / 62.0 + 1.0 / 61.0)).abs() < 1e-12, "{found:?}");
        assert!((found[2].score - 1.0 / 62.0).abs() < 1e-12, "{found:?}");
        assert_eq!(order(&reciprocal_rank_fusion([list("abc"), list("bxya")], 2)), "ba");
    }

    #[test]
    fn p6_one_list_keeps_its_order() {
        assert_eq!(order(&reciprocal_rank_fusion([list("cab"), list("")], 9)), "cab");
        assert_eq!(order(&reciprocal_rank_fusion([list(""), list("cab")], 9)), "cab");
        assert_eq!(order(&reciprocal_rank_fusion([list("a"), list("b")], 9)), "ab");
        assert_eq!(reciprocal_rank_fusion([list(""), list("")], 9), []);
    }

    #[test]
    fn p6_copies_count_as_one_and_are_named() {
        let of = |path: &str, section: &str, text: &str| Passage {
            path: path.into(),
            section: section.into(),
            ..list(text).remove(0)
        };
        let with_text = |passage: Passage, text: &str| Passage { text: text.into(), ..passage };
        let mut words: Vec<Passage> = (0..9).map(|copy| of(&format!("{copy}.pdf"), "", "x")).collect();
        words.push(with_text(of("other.pdf", "", "y"), "y  z"));
        words.push(of("other.pdf", "Elsewhere", "x"));
        let found = without_copies(words.clone());
        assert_eq!((found.len(), found[0].path.as_str()), (3, "0.pdf"));
        assert_eq!(found[0].also_in, ["1.pdf", "2.pdf", "3.pdf", "4.pdf", "5.pdf"]);
        assert!(found[1].also_in.is_empty());
        let meant = vec![with_text(of("copy.pdf", "", "y"), "y z"), of("7.pdf", "", "x")];
        let found = reciprocal_rank_fusion([words, meant], 9);
        // x: 1/61 + 1/62, y: 1/62 + 1/61; the first list goes before.
        let shown: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.also_in.len())).collect();
        assert_eq!(shown, [("0.pdf", 5), ("other.pdf", 1), ("other.pdf", 0)]);
    }
}
