//! Questions over a copy of this project's `docs/`, with the places that answer them, and what a way to search is worth.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, dead_code)]

use std::{fmt, path::Path};

use toolrack_documents::{DocumentKind, Documents, Passage, read};

/// So many passages are given to a model where it says nothing else.
pub(crate) const GIVEN: usize = 5;

/// A question of `data/retrieval.txt`.
pub(crate) struct Question {
    pub(crate) question: &'static str,
    /// The words that a model would search for in its place.
    pub(crate) rewrite: &'static str,
    places: Vec<(&'static str, &'static str)>,
}

impl Question {
    fn is_answered_by(&self, passage: &Passage) -> bool {
        let is_in = |section: &str| passage.section.replace('`', "").contains(section);
        self.places.iter().any(|(file, section)| passage.path == *file && is_in(section))
    }
}

pub(crate) fn questions() -> Vec<Question> {
    let lines = include_str!("../data/retrieval.txt").lines();
    let asked = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    asked
        .map(|line| {
            let [question, places, rewrite] = line.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("not `question | places | rewrite`: {line}")
            };
            let places = places.split(" or ").map(|place| place.split_once('#').unwrap()).collect();
            Question { question, rewrite, places }
        })
        .collect()
}

/// Adds the pages of a folder: `tests/data/pages` has those of `docs/` as they once were. They stay as they are, so that what is measured
/// changes with the search alone.
pub(crate) async fn add_pages(documents: &Documents, folder: &Path) {
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let (name, text) = (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap());
        if name.ends_with(".md") {
            let document = read::document(&name, DocumentKind::Markdown, &text, None).unwrap();
            documents.add(document).await.unwrap();
        }
    }
}

/// What a way to search is worth.
pub(crate) struct Quality {
    /// The part of the questions that are answered by the first [`GIVEN`] passages.
    pub(crate) recall: f64,
    /// The mean of 1 / the rank of the first passage that answers, 0 where none of those does.
    pub(crate) mrr: f64,
    /// The questions that none of those answers.
    pub(crate) missed: Vec<&'static str>,
}

impl Quality {
    pub(crate) async fn of(search: impl AsyncFn(&Question) -> Vec<Passage>) -> Self {
        let questions = questions();
        let (mut reciprocal, mut missed) = (0.0, Vec::new());
        for question in &questions {
            let passages = search(question).await;
            match passages.iter().take(GIVEN).position(|passage| question.is_answered_by(passage)) {
                Some(rank) => reciprocal += 1.0 / (rank as f64 + 1.0),
                None => missed.push(question.question),
            }
        }
        let count = questions.len() as f64;
        Self { recall: 1.0 - missed.len() as f64 / count, mrr: reciprocal / count, missed }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recall@{GIVEN} {:.3}, MRR {:.3}", self.recall, self.mrr)
    }
}
