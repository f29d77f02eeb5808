//! How well passages are found: questions over this project's own `docs/`, with the places that answer them.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

mod documents_kept;

use std::path::Path;

use documents_kept::{Place, add};
use registry_core::documents::{DocumentFilter, Passage};

/// So many passages are given to a model where it says nothing else.
const GIVEN: usize = 5;
/// What has to hold; a little below what was measured.
const RECALL_FLOOR: f64 = 0.8;
const MRR_FLOOR: f64 = 0.68;

struct Question<'t> {
    question: &'t str,
    places: Vec<(&'t str, &'t str)>,
}

impl Question<'_> {
    fn is_answered_by(&self, passage: &Passage) -> bool {
        let is_in = |section: &str| passage.section.replace('`', "").contains(section);
        self.places.iter().any(|(file, section)| passage.path == *file && is_in(section))
    }
}

fn questions() -> Vec<Question<'static>> {
    let lines = include_str!("data/retrieval.txt").lines();
    let asked = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    asked
        .map(|line| {
            let (question, places) = line.split_once(" | ").unwrap();
            let places = places.split(" or ").map(|place| place.split_once('#').unwrap()).collect();
            Question { question, places }
        })
        .collect()
}

#[tokio::test]
async fn p6_questions_find_the_passages_that_answer_them() {
    for place in Place::all("p6_questions_find_the_passages_that_answer_them") {
        let documents = place.open();
        for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            add(&documents, &name, &std::fs::read_to_string(file.path()).unwrap()).await;
        }
        let questions = questions();
        assert!(questions.len() >= 60, "{}", questions.len());
        let (mut found, mut reciprocal, mut missed) = (0.0, 0.0, Vec::new());
        for question in &questions {
            let passages =
                documents.search(question.question, GIVEN, &DocumentFilter::default()).await.unwrap();
            match passages.iter().position(|passage| question.is_answered_by(passage)) {
                Some(rank) => {
                    found += 1.0;
                    reciprocal += 1.0 / (rank as f64 + 1.0);
                }
                None => {
                    let places =
                        passages.iter().map(|passage| format!("{}#{}", passage.path, passage.section));
                    missed.push(format!(
                        "{}\n    {}",
                        question.question,
                        places.collect::<Vec<_>>().join("\n    ")
                    ));
                }
            }
        }
        let (recall, mrr) = (found / questions.len() as f64, reciprocal / questions.len() as f64);
        println!(
            "{place:?}: {} questions: recall@{GIVEN} {recall:.3}, MRR {mrr:.3}; missed:\n{}",
            questions.len(),
            missed.join("\n")
        );
        assert!(recall >= RECALL_FLOOR && mrr >= MRR_FLOOR, "recall@{GIVEN} {recall:.3}, MRR {mrr:.3}");
    }
}
