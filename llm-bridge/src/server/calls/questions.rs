//! `GET /api/questions`, `GET` and `POST /api/questions/{id}`: what tools ask in the middle of a call.

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
    response::Response,
};
use jiff::Timestamp;
use registry_core::{
    QuestionCall, QuestionCallState, QuestionError,
    guard::approval::{AnswerError, Approval, ApprovalState, Question},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::approvals;
use crate::server::{
    App,
    callers::identity::Identity,
    openapi::Operation,
    requests::{
        api_error::ApiError,
        body::{Body, JsonBody},
        name::Name,
        pages::Page,
    },
};

/// The user's answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QuestionAnswer")]
pub(in crate::server) struct Answer {
    /// An object that fits the question's `schema`; where that has one field, the value of the field will do.
    #[serde(default)]
    answer: Option<Value>,
    /// Whether the user does not want to answer.
    #[serde(default)]
    decline: bool,
    /// Why not, for the tool.
    #[serde(default)]
    reason: Option<String>,
}

impl Body for Answer {
    const EXAMPLE: &str = "`{\"answer\": …}` or `{\"decline\": true}`";
}

/// A question of a tool.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PendingToolQuestion")]
pub(in crate::server) struct Shown {
    /// Names it.
    id: String,
    /// The tool that asks.
    tool: String,
    /// What is asked.
    message: String,
    /// The form of the answer: a JSON Schema of an object whose fields are texts, numbers and booleans.
    schema: Value,
    /// When it was asked (UTC).
    requested_at: Timestamp,
    /// Until when it can be answered (UTC).
    expires_at: Timestamp,
}

impl Shown {
    fn of(kept: Approval) -> Option<Self> {
        let Approval { id, tool, question, requested_at, expires_at, .. } = kept;
        let Question { message, schema } = question?;
        Some(Self { id, tool, message, schema, requested_at, expires_at })
    }
}

/// Pending questions.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct QuestionList {
    questions: Vec<Shown>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

pub(in crate::server) fn list_operation() -> Operation {
    let operation = Operation::new(
        Method::GET,
        "Questions",
        "list_questions",
        "The questions of tools that wait for an answer",
    )
    .details("Each user sees their own.")
    .answers::<QuestionList>(200, "The pending questions, oldest first.");
    Page::operation(operation)
}

pub(in crate::server) async fn list(
    Extension(identity): Extension<Identity>,
    page: Page,
) -> Result<Response, ApiError> {
    let (registry, user) = (identity.registry.clone(), identity.caller.user.clone());
    let own = async move {
        Ok::<_, ApiError>(page.of(registry.pending_questions_of(&user).await?, approvals::place))
    };
    let shown = |(own, next): (Vec<Approval>, _)| QuestionList {
        questions: own.into_iter().filter_map(Shown::of).collect(),
        next,
    };
    identity.read_json(own, shown).await
}

/// What has become of a question.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolQuestion")]
pub(in crate::server) struct Detail {
    #[serde(flatten)]
    question: Shown,
    /// `pending`, `answered`, `declined`, `withdrawn` or `expired`.
    state: &'static str,
    /// The call that has asked, where it is kept and nobody waits for it.
    call: Option<CallShown>,
}

/// A call that outlives the server on which it was made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuestionCall")]
struct CallShown {
    /// `waiting`, `running`, `interrupted` or `done`.
    state: &'static str,
    /// What it came to: `success`, and `result` or `error`.
    result: Option<Value>,
}

impl From<QuestionCall> for CallShown {
    fn from(QuestionCall { state, result, .. }: QuestionCall) -> Self {
        let state = match state {
            QuestionCallState::Waiting => "waiting",
            QuestionCallState::Running => "running",
            QuestionCallState::Interrupted => "interrupted",
            QuestionCallState::Done => "done",
        };
        Self { state, result }
    }
}

pub(in crate::server) fn read_operation() -> Operation {
    Operation::new(Method::GET, "Questions", "read_question", "A question of a tool, and its call")
        .path("id", "The question's id.")
        .answers::<Detail>(
            200,
            "The question. Where its call outlived the server, `call` says what became of it.",
        )
        .refuses(404, "The user has no such question (`question_not_found`).")
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found("question_not_found", format!("there is no question `{id}`"))
}

pub(in crate::server) async fn read(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<Response, ApiError> {
    let reader = identity.clone();
    let read = async move {
        let (detail, kept) = detail(&reader, &id).await?;
        resume(&app, &reader, &kept);
        Ok::<_, ApiError>(detail)
    };
    identity.read_json(read, |detail| detail).await
}

async fn detail(identity: &Identity, id: &str) -> Result<(Detail, Approval), ApiError> {
    let registry = &identity.registry;
    let kept = registry.question(id).await?.filter(|kept| kept.user == identity.caller.user);
    let kept = kept.ok_or_else(|| unknown(id))?;
    let state = match kept.state {
        ApprovalState::Pending if kept.time_left(registry.clock().now()).is_zero() => "expired",
        ApprovalState::Pending => "pending",
        ApprovalState::Answered { .. } => "answered",
        ApprovalState::Declined { .. } => "declined",
        _ => "withdrawn",
    };
    let call = registry.call_of_question(&kept).await?.map(CallShown::from);
    let question = Shown::of(kept.clone()).ok_or_else(|| unknown(id))?;
    Ok((Detail { question, state, call }, kept))
}

/// Makes the call anew where the server that has asked is gone. It is audited like any other, whether or not the client waits.
fn resume(app: &App, identity: &Identity, answered: &Approval) {
    if answered.call.is_none() || answered.state == ApprovalState::Pending {
        return;
    }
    let (registry, question) = (identity.registry.clone(), answered.clone());
    let context = identity.context().with_cancellation(app.closing.child_token());
    app.backend.spawn(async move {
        match registry.resume_answered(context, &question).await {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                let (tool, call_id, success) =
                    (outcome.tool_name.as_str(), &outcome.call_id, outcome.is_success());
                tracing::info!(tool, call_id, success, "waiting_call_made_anew");
            }
            Err(cause) => tracing::error!(question = question.id, %cause, "waiting_call_not_made"),
        }
    });
}

pub(in crate::server) fn answer_operation() -> Operation {
    Operation::new(Method::POST, "Questions", "answer_question", "Answer a question of a tool, or decline to")
        .path("id", "The question's id.")
        .reads::<Answer>()
        .answers::<Shown>(200, "The answered question.")
        .refuses(404, "The user has no such question (`question_not_found`).")
        .refuses(409, "It was answered already, or has expired (`question_closed`).")
        .refuses(
            422,
            "The answer does not fit the question's schema (`invalid_answer`); the question stays open.",
        )
}

/// An object as it is; anything else as the value of the only field.
fn object(question: &Question, answer: Value) -> Value {
    let mut fields = question.fields();
    match (fields.next(), fields.next()) {
        (Some((name, ..)), None) if !answer.is_object() => Map::from_iter([(name.to_owned(), answer)]).into(),
        _ => answer,
    }
}

pub(in crate::server) async fn answer(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    JsonBody(Answer { answer, decline, reason }): JsonBody<Answer>,
) -> Result<Json<Shown>, ApiError> {
    let unknown = || unknown(&id);
    let (registry, user) = (&identity.registry, identity.caller.user.as_str());
    // It belongs to the user who is asked; an admin does not answer for others. Whether another user has it is not disclosed.
    let kept = registry.question(&id).await?.filter(|kept| kept.user == user).ok_or_else(unknown)?;
    let question = kept.question.as_ref().ok_or_else(unknown)?;
    let answered = match (answer, decline) {
        (None, true) => registry.decline_question(&id, user, reason).await.map_err(QuestionError::Answer),
        (Some(answer), false) => registry.answer_question(&id, user, object(question, answer)).await,
        _ => return Err(ApiError::invalid("body", format!("send {}", Answer::EXAMPLE))),
    };
    match answered {
        Ok(kept) => {
            resume(&app, &identity, &kept);
            Shown::of(kept).map(Json).ok_or_else(unknown)
        }
        Err(QuestionError::Invalid(message) | QuestionError::Answer(AnswerError::Invalid(message))) => {
            Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_answer", message))
        }
        Err(QuestionError::Answer(AnswerError::Unknown)) => Err(unknown()),
        Err(QuestionError::Answer(AnswerError::Closed)) => {
            let message =
                "this question was answered already, or has expired; repeat the call to be asked again";
            Err(ApiError::new(StatusCode::CONFLICT, "question_closed", message))
        }
        Err(QuestionError::Answer(AnswerError::Store(cause))) => Err(cause.into()),
        Err(other) => Err(ApiError::internal(other.to_string())),
    }
}
