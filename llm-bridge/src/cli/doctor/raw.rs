//! Whether the model calls tools by the raw route, with a prompt from its own template, and whether that serves it better.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    calls::{Native, Text, all, one_wrong},
    report::{Finding, Verdict, instead},
    session::Session,
    tools::QUESTIONS,
};
use crate::upstream::{RawModel, UpstreamError};

/// What was seen of the raw route.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// The model with its template; `None` where there is no such route.
    pub(super) model: Option<Arc<RawModel>>,
    /// The file of the template, if it is not the server's.
    pub(super) file: Option<PathBuf>,
    /// How many questions were answered right.
    pub(super) right: u32,
    /// The dialect of most right answers.
    pub(super) dialect: Option<&'static str>,
}

/// What the template does with tools: that of a file, or of the server. There is no raw route where there is none that can be read.
pub(super) async fn template(
    session: &Session<'_>,
    file: Option<&Path>,
) -> (Finding, Result<Arc<RawModel>, Finding>) {
    match session.route.raw_model(file).await {
        Ok(model) => (in_template(&model), Ok(model)),
        Err(error) => (without(&error), Err(without(&error))),
    }
}

fn in_template(model: &RawModel) -> Finding {
    let (verdict, note) = match (model.knows_tools, model.dialect) {
        (true, Some(_)) => (Verdict::Yes, ""),
        (true, None) => {
            (Verdict::Partly, "it lists the tools, and writes their calls in no dialect that is known")
        }
        (false, _) => (Verdict::No, "it lists no tools; they are described in the prompt"),
    };
    Finding { dialect: model.dialect.filter(|_| model.knows_tools), ..Finding::new(verdict, note) }
}

/// Asks the same questions as of the chat endpoint.
pub(super) async fn raw(
    session: &mut Session<'_>,
    (file, model): (Option<&Path>, Result<Arc<RawModel>, Finding>),
    native: &Native,
    text: &Text,
) -> (Finding, Raw) {
    let mut seen = Raw { file: file.map(Path::to_owned), ..Raw::default() };
    let model = match model {
        Ok(model) => model,
        Err(none) => return (none, seen),
    };
    let (mut tries, mut wrong, mut by_dialect) = (0, None, BTreeMap::new());
    for question in &QUESTIONS {
        let (request, raw) = match session.with_template(question.text(), &model).await {
            Ok(asked) => asked,
            Err(error) => return (without(&error), seen),
        };
        let answered = match session.ask_raw(request, raw).await {
            Ok(answered) => answered,
            Err(error) if tries == 0 => return (error.into(), seen),
            Err(error) => {
                wrong.get_or_insert(Finding::from(error).note);
                tries += 1;
                continue;
            }
        };
        tries += 1;
        let calls = session.calls(&answered, None);
        if calls.is_text_right(question) {
            seen.right += 1;
            *by_dialect.entry(calls.dialect).or_insert(0) += 1;
        } else {
            wrong.get_or_insert_with(|| instead(&answered));
        }
    }
    seen.dialect = by_dialect.into_iter().max_by_key(|(_, right)| *right).and_then(|(dialect, _)| dialect);
    seen.model = Some(model);
    let chat = native.right.max(text.best.map_or(0, |(_, right)| right));
    let compared = match seen.right.cmp(&chat) {
        Ordering::Less => "less often right than by the chat endpoint",
        Ordering::Equal => "as often right as by the chat endpoint",
        Ordering::Greater => "more often right than by the chat endpoint",
    };
    let compared = format!("{compared}: {} and {chat} of {}", seen.right, all());
    let note = match wrong {
        Some(wrong) if seen.right > 0 => format!("{compared}; {}", one_wrong(&wrong)),
        Some(wrong) => wrong,
        None => compared,
    };
    let finding = Finding { dialect: seen.dialect, ..Finding::of(seen.right, tries, note) };
    (finding.figure("chat_right", chat), seen)
}

/// That there is no such route, and why.
fn without(error: &UpstreamError) -> Finding {
    let why = error.message().map_or_else(|| error.to_string(), str::to_owned);
    Finding::not_tried(&why)
}
