//! Puts ranked lists together.

use std::collections::HashMap;

use super::Passage;

/// How little the first places count before the next: the value of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
/// Condorcet and individual Rank Learning Methods" (SIGIR 2009).
const K: f64 = 60.0;

/// The best passages of all lists by reciprocal rank fusion: a passage's score is the sum of 1 / (60 + its rank) over the lists that it is
/// in, the first rank being 1. The scores within the lists do not matter, so they need not be of one kind. Of passages of one score, those of
/// earlier lists come first.
pub fn reciprocal_rank_fusion(lists: impl IntoIterator<Item = Vec<Passage>>, limit: usize) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut known: HashMap<(String, u32, String), usize> = HashMap::new();
    for list in lists {
        for (rank, passage) in (1_u32..).zip(list) {
            let score = 1.0 / (K + f64::from(rank));
            // A long line and a page of a PDF are several passages with one place.
            let key = (passage.path.clone(), passage.first, passage.text.clone());
            let at = *known.entry(key).or_insert(passages.len());
            match passages.get_mut(at) {
                Some(known) => known.score += score,
                None => passages.push(Passage { score, ..passage }),
            }
        }
    }
    passages.sort_by(|one, other| other.score.total_cmp(&one.score));
    passages.truncate(limit);
    passages
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
}
