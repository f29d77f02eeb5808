//! Whether the model calls tools: in the fields of the API, and as text in which dialect.

use std::collections::{BTreeMap, VecDeque};

use toolrack_apis::Request;

use super::{
    raw::Raw,
    report::{Finding, Verdict, instead},
    session::{Answered, Session, Unanswered},
    tools::{PAIR, QUESTIONS},
};
use crate::turn::prompt::COMMON_DIALECT;

/// Dialects that are tried where the model does not call in those it has shown: of each way of writing calls the one that most models
/// know.
const OTHERS: [&str; 8] =
    ["bare_json", "qwen3_coder", "llama3_json", "pythonic", "mistral", "glm45", "deepseek_v31", "minimax_m2"];
/// How many dialects are tried at most.
const MOST_TRIED: usize = 12;

/// What was seen of calls in the fields of the API.
pub(super) struct Native {
    /// How many questions were answered by calls that Toolrack reads, native or in the text.
    pub(super) right: u32,
    /// How many of them natively.
    pub(super) native: u32,
    /// The dialects of calls in the text, and how many right ones each has; the most frequent first.
    pub(super) dialects: Vec<(&'static str, u32)>,
    /// The server refuses tools.
    pub(super) is_refused: bool,
    /// The arguments of native calls come in pieces.
    pub(super) in_pieces: Option<bool>,
}

/// Asks with the tools in the fields of the API.
pub(super) async fn native(session: &mut Session<'_>) -> (Finding, Native) {
    let mut seen = Native { right: 0, native: 0, dialects: Vec::new(), is_refused: false, in_pieces: None };
    let (mut tries, mut wrong, mut by_dialect) = (0, None, BTreeMap::new());
    let (mut is_recovered, mut called, mut unread) = (false, false, 0);
    for question in &QUESTIONS {
        let answered = match session.ask(session.with_tools(question.text())).await {
            Ok(answered) => answered,
            Err(error) => {
                let is_unread = matches!(error, Unanswered::Unread(_));
                let finding = Finding::from(error);
                if tries == 0 && !is_unread {
                    seen.is_refused = finding.is(Verdict::Refused);
                    return (finding, seen);
                }
                unread += u32::from(is_unread);
                wrong.get_or_insert(finding.note);
                tries += 1;
                continue;
            }
        };
        tries += 1;
        let calls = session.calls(&answered, None);
        let is_right = calls.is_right(question);
        if let Some(dialect) = calls.dialect {
            *by_dialect.entry(dialect).or_insert(0) += u32::from(calls.is_text_right(question));
        }
        seen.in_pieces = seen.in_pieces.max(answered.in_pieces);
        seen.native += u32::from(calls.is_native_right(question));
        seen.right += u32::from(is_right);
        called |= !calls.is_empty();
        is_recovered |= answered.is_recovered && is_right;
        if !is_right {
            wrong.get_or_insert_with(|| instead(&answered));
        }
    }
    seen.dialects = by_dialect.into_iter().collect();
    seen.dialects.sort_by_key(|(_, right)| std::cmp::Reverse(*right));
    let note = match wrong {
        Some(wrong) if seen.right > 0 => one_wrong(&wrong),
        Some(wrong) => wrong,
        None if is_recovered => {
            "the server could not read some; Toolrack reads them from its error".to_owned()
        }
        None => String::new(),
    };
    if seen.native == 0 && seen.right > 0 {
        let dialect = seen.dialects.first().map(|(dialect, _)| *dialect);
        let finding = Finding::of(seen.right, tries, note);
        return (Finding { verdict: Verdict::Text, dialect, ..finding }, seen);
    }
    let finding = Finding::of(seen.native, tries, note);
    let verdict = match seen.right {
        0 if unread == tries => Verdict::Failed,
        0 if called => Verdict::Wrong,
        _ => finding.verdict,
    };
    (Finding { verdict, ..finding }, seen)
}

/// What was seen of calls in the text, with the tools described in the prompt.
pub(super) struct Text {
    /// The dialect in which the model answers right most often, and how often of [`QUESTIONS`].
    pub(super) best: Option<(&'static str, u32)>,
    /// How often it answers right there for one who reads all dialects.
    pub(super) right_in_any: u32,
}

/// Describes the tools in the prompt, in one dialect after the other: first in those that the model has shown, then in the common one
/// and, where nothing has worked, in others.
pub(super) async fn text(session: &mut Session<'_>, native: &Native) -> (Finding, Text) {
    let mut next: VecDeque<&'static str> = native.dialects.iter().map(|(dialect, _)| *dialect).collect();
    next.push_back(COMMON_DIALECT);
    let mut others = OTHERS.into_iter().filter(|_| native.right == 0);
    let (mut tried, mut failure): (Vec<&'static str>, Option<Finding>) = (Vec::new(), None);
    let (mut seen, mut wrong) = (Text { best: None, right_in_any: 0 }, None);
    while tried.len() < MOST_TRIED {
        let has_one = seen.best.is_some_and(|(_, right)| right > 0);
        let Some(dialect) = next.pop_front().or_else(|| others.next().filter(|_| !has_one)) else { break };
        if tried.contains(&dialect) {
            continue;
        }
        tried.push(dialect);
        let (mut right, mut in_any) = (0, 0);
        for (at, question) in QUESTIONS.iter().enumerate() {
            session.look_at(&format!("calls as text in {dialect}"));
            let answered = match session.ask(session.with_prompt(question.text(), dialect)).await {
                Ok(answered) => answered,
                Err(error) if matches!(error, Unanswered::Unread(_)) => {
                    wrong.get_or_insert(Finding::from(error).note);
                    if at == 0 {
                        break;
                    }
                    continue;
                }
                Err(error) => {
                    failure.get_or_insert(error.into());
                    break;
                }
            };
            let calls = session.calls(&answered, None);
            let is_right = calls.is_right(question);
            in_any += u32::from(is_right);
            right += u32::from(session.calls(&answered, Some(dialect)).is_text_right(question));
            next.extend(calls.dialect.filter(|seen| !tried.contains(seen)));
            if !is_right {
                wrong.get_or_insert_with(|| instead(&answered));
            }
            // One try shows whether the model takes to the dialect at all.
            if at == 0 && right == 0 {
                break;
            }
        }
        if seen.best.is_none_or(|(_, best)| right > best) && right > 0 {
            (seen.best, seen.right_in_any) = (Some((dialect, right)), in_any);
        }
        if right == all() || failure.is_some() {
            break;
        }
    }
    let finding = match (seen.best, failure) {
        (Some((dialect, right)), _) => Finding {
            dialect: Some(dialect),
            ..Finding::of(
                right,
                all(),
                wrong.filter(|_| right < all()).as_deref().map(one_wrong).unwrap_or_default(),
            )
        },
        (None, Some(failure)) => failure,
        (None, None) => {
            let wrong = wrong.unwrap_or_default();
            Finding::new(Verdict::No, format!("{} dialects tried; {wrong}", tried.len()))
        }
    };
    (finding.figure("tried", tried), seen)
}

/// A wrong answer among right ones.
pub(super) fn one_wrong(wrong: &str) -> String {
    format!("a wrong one {wrong}")
}

/// How many questions there are.
pub(super) fn all() -> u32 {
    u32::try_from(QUESTIONS.len()).unwrap_or(u32::MAX)
}

/// Whether so few right answers tell nothing.
pub(super) fn is_seldom(right: u32) -> bool {
    right * 2 <= all()
}

/// How a model is asked that was seen to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// With the tools in the fields of the API.
    Native,
    /// With the tools in the prompt, in this dialect.
    Prompt(&'static str),
    /// By the raw route.
    Raw,
}

impl Way {
    /// The way in which the model calls right more often, and how many questions it answers so; `None` where it does not call at all.
    /// `is_raw` is whether it is set to the raw route, which then stands where the others are no better.
    pub(super) fn best(native: &Native, text: &Text, raw: &Raw, is_raw: bool) -> Option<(Self, u32)> {
        let chat = match text.best {
            Some((dialect, right)) if right > native.right => (Self::Prompt(dialect), right),
            _ => (Self::Native, native.right),
        };
        let by_raw = raw.right > chat.1 || is_raw && raw.right == chat.1;
        let best = if by_raw { (Self::Raw, raw.right) } else { chat };
        Some(best).filter(|(_, right)| *right > 0)
    }

    async fn ask(self, session: &mut Session<'_>, raw: &Raw, text: &str) -> Result<Answered, Unanswered> {
        let request = match (self, &raw.model) {
            (Self::Raw, Some(model)) => {
                let (request, question) = session.with_template(text, model).await?;
                return session.ask_raw(request, question).await;
            }
            (Self::Prompt(dialect), _) => session.with_prompt(text, dialect),
            (Self::Native | Self::Raw, _) => session.with_tools(text),
        };
        session.ask(request).await
    }
}

/// Asks for two calls in one answer; where there are fewer, once more with a request that allows several.
pub(super) async fn parallel(session: &mut Session<'_>, way: Option<Way>, raw: &Raw) -> Finding {
    let Some(way) = way else { return Finding::not_tried("no right call was seen") };
    let first = match way.ask(session, raw, PAIR.text()).await {
        Ok(answered) => answered,
        Err(error) => return error.into(),
    };
    let calls = session.calls(&first, None);
    if calls.is_right(&PAIR) {
        return Finding::new(Verdict::Yes, "");
    }
    let one = match calls.whole().count() {
        0 => instead(&first),
        1 => "one call only".to_owned(),
        _ => format!("not the right ones: {}", instead(&first)),
    };
    if way != Way::Native {
        return Finding::new(Verdict::No, one);
    }
    let request = Request { parallel: Some(true), ..session.with_tools(PAIR.text()) };
    match session.ask(request).await {
        Ok(answered) if session.calls(&answered, None).is_right(&PAIR) => {
            Finding::new(Verdict::Partly, "where the request has `parallel_tool_calls: true`")
        }
        _ => Finding::new(Verdict::No, one),
    }
}
