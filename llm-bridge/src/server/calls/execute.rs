//! `POST /execute`: one tool call, from a client or from a server that has this one as a module.

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use registry_core::{
    Content, ErrorKind, Origin, Registry, ToolCall, ToolContext, ToolError, ToolOutcome, ToolReply,
    flow::{HasRead, TurnFlow},
    guard::approval::APPROVAL_TIMEOUT,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::task::JoinError;
use toolrack_apis::whole_number;
use toolrack_remote::module::{APPROVAL_WAIT_HEADER, HOPS_HEADER, Hops, MAX_HOPS, READS_HEADER, reads_of};

use crate::{
    beside::beside,
    identifier::check_identifier,
    server::{
        App,
        callers::identity::Identity,
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{JsonBody, shortened},
        },
    },
    traces,
};

/// The request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolCall")]
struct Wanted {
    /// The tool's name.
    tool_name: String,
    /// The arguments.
    #[serde(default = "no_arguments")]
    arguments: Value,
    /// The user of the call; needs a key that delegates.
    #[serde(default)]
    user_id: Option<String>,
    /// How long to wait for human approval, or for the answer to a question of the tool, in seconds.
    #[serde(default, deserialize_with = "whole_number")]
    approval_wait_seconds: u64,
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

/// Which route a call came by, which decides what its name means.
pub(in crate::server) enum EntryPoint {
    /// A client: the tool's own name goes before the one in the manifest, which has this prefix.
    Client(String),
    /// A server that has this one as a module and knows its tools by the manifest.
    Server(String),
    /// `/api/modules/{module}/execute`: the name within the module, or the whole one.
    Module(String),
}

impl EntryPoint {
    /// The name in the registry.
    fn own_name(&self, registry: &Registry, asked: &str) -> String {
        let whole = || Some(asked.to_owned());
        let inner = |prefix: &str| within(prefix, asked).map(str::to_owned);
        let meant = match self {
            Self::Client(prefix) => [whole(), inner(prefix)],
            Self::Server(prefix) => [inner(prefix), whole()],
            Self::Module(module) => [Some(format!("{module}.{asked}")), inner(module).and_then(|_| whole())],
        };
        let known = meant.iter().flatten().find(|name| registry.get(name).is_some()).cloned();
        known.or_else(|| meant.into_iter().flatten().next()).unwrap_or_default()
    }
}

/// The name behind a prefix and a dot.
fn within<'n>(prefix: &str, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(prefix)?.strip_prefix('.')
}

/// How many servers the call has passed.
fn hops(headers: &HeaderMap) -> Hops {
    Hops::of_header(headers.get(HOPS_HEADER).map(HeaderValue::as_bytes))
}

/// How long to wait for human approval: the longer of the body's and the header's time.
fn approval_wait(wanted: &Wanted, headers: &HeaderMap) -> Duration {
    let said = headers.get(APPROVAL_WAIT_HEADER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let wait = Duration::from_secs(wanted.approval_wait_seconds)
        .max(Duration::from_millis(said.unwrap_or_default()));
    wait.min(APPROVAL_TIMEOUT)
}

/// What a client or another server says was read before the call. By itself a call is no part of a turn. A word that is not known says that
/// something was read.
fn read_before(headers: &HeaderMap) -> Option<TurnFlow> {
    let mut read = HasRead::default();
    read.note(reads_of(headers)?, "the caller's turn");
    Some(TurnFlow::after(read))
}

/// Adds the hops for tools of modules.
fn with_hops(context: ToolContext, hops: Hops) -> ToolContext {
    let resources = context.resources().clone().with(hops);
    context.with_resources(resources)
}

pub(in crate::server) fn execute_operation() -> Operation {
    call_operation("execute", "Call a tool")
}

/// The operation of every route that calls a tool.
pub(in crate::server) fn call_operation(id: &str, summary: &str) -> Operation {
    Operation::new(Method::POST, "Tools", id, summary)
        .details("The status is the reason when the call did not run. With 200 it ran, and `success` says whether it succeeded.")
        .header(HOPS_HEADER, "How many servers the call has passed.")
        .header(APPROVAL_WAIT_HEADER, "How long to wait for human approval, in milliseconds.")
        .header(READS_HEADER, "What was read before the call: `private`, `untrusted` or both with a comma. The answer says in the same header what its result holds.")
        .reads::<Wanted>()
        .answers::<ToolReply>(200, "The tool ran.")
        .answers::<ToolReply>(202, "The call requires human approval (`approval` is its id), or the answer to a question (`question`). Repeat it then.")
        .answers::<ToolReply>(403, "The user may not call the tool.")
        .answers::<ToolReply>(404, "No tool has that name.")
        .answers::<ToolReply>(422, "The arguments do not match the tool's schema.")
        .answers::<ToolReply>(429, "The user has reached a limit of the tool.")
        .retry_after(429)
        .answers::<ToolReply>(503, "The queue of calls is full.")
        .retry_after(503)
}

pub(in crate::server) async fn execute(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let prefix = app.settings.module_name.clone();
    let is_server = headers.contains_key(HOPS_HEADER);
    let entry = if is_server { EntryPoint::Server(prefix) } else { EntryPoint::Client(prefix) };
    make_call(app, identity, &headers, body, &entry).await
}

/// Executes the call in a request's body.
pub(in crate::server) async fn make_call(
    app: App,
    mut identity: Identity,
    headers: &HeaderMap,
    body: Value,
    entry: &EntryPoint,
) -> Result<Response, ApiError> {
    let wanted = match Wanted::deserialize(&body) {
        Ok(wanted) => wanted,
        Err(fault) => {
            let fault = shortened(&fault);
            let message =
                format!("the call is not valid: {fault}; send `{{\"tool_name\": …, \"arguments\": {{…}}}}`");
            // A request that names a tool is audited as a refused call.
            if let Some(call) = named(body, &identity.registry, entry) {
                refuse(&app, identity, call, ErrorKind::InvalidArguments, &message).await?;
            }
            return Err(ApiError::invalid("body", message));
        }
    };
    drop(body);
    let approval_wait = approval_wait(&wanted, headers);
    let own_name = entry.own_name(&identity.registry, &wanted.tool_name);
    let alias = (own_name != wanted.tool_name).then_some(wanted.tool_name);
    let call = ToolCall::new(own_name, wanted.arguments).with_origin(Origin::Http);
    let hops = hops(headers);
    if hops.0 > MAX_HOPS {
        let message =
            format!("the call passed more than {MAX_HOPS} servers; are two servers modules of each other?");
        let outcome = refuse(&app, identity.clone(), call, ErrorKind::Refused, &message).await?;
        return reply(&identity, outcome, alias).await;
    }
    // Without keys there is only one user, whatever id another server sends.
    let other = wanted.user_id.filter(|user| *user != identity.caller.user && !identity.keyless);
    if let Some(user) = other {
        if !identity.delegate {
            let message = "this key may not call for another user; leave `user_id` out";
            let outcome = refuse(&app, identity.clone(), call, ErrorKind::PermissionDenied, message).await?;
            return reply(&identity, outcome, alias).await;
        }
        if let Err(rule) = check_identifier(&user) {
            let message = format!("`user_id` has to be {rule}");
            refuse(&app, identity, call, ErrorKind::InvalidArguments, &message).await?;
            return Err(ApiError::invalid("user_id", message));
        }
        identity = identity.on_behalf_of(&user).await?;
    }
    // A client that disconnects drops this future, and with it the guard.
    let cancellation = app.closing.child_token();
    let _cancel = cancellation.clone().drop_guard();
    let context =
        with_hops(identity.context(), hops).with_approval_wait(approval_wait).with_cancellation(cancellation);
    let context = match read_before(headers) {
        Some(flow) => context.with_flow(flow),
        None => context,
    };
    let context = match traces::of_request(app.settings.traces.as_ref(), headers) {
        Some(trace) => context.with_trace(trace),
        None => context,
    };
    // A server that calls for its users has no place to show a question.
    let context = if matches!(entry, EntryPoint::Server(_)) { context } else { context.with_questions() };
    // In a task, so that the call is audited also when its client disconnects.
    let registry = identity.registry.clone();
    let running = app.backend.spawn(async move { registry.execute(&context, call).await });
    reply(&identity, running.await.map_err(unfinished)?, alias).await
}

/// The call that an invalid body names.
fn named(mut body: Value, registry: &Registry, entry: &EntryPoint) -> Option<ToolCall> {
    let name = entry.own_name(registry, body.get("tool_name")?.as_str()?);
    let arguments = body.get_mut("arguments").map_or_else(no_arguments, Value::take);
    Some(ToolCall::new(name, arguments).with_origin(Origin::Http))
}

/// Refuses a call before the registry looks at it. It is audited like any other, also when the client disconnects.
async fn refuse(
    app: &App,
    identity: Identity,
    call: ToolCall,
    kind: ErrorKind,
    message: &str,
) -> Result<ToolOutcome, ApiError> {
    let Identity { registry, caller, .. } = identity;
    let error = ToolError::new(kind, message);
    let context = registry.context(caller);
    let refusing =
        app.backend.spawn(async move { registry.select(&context).refuse(&context, call, error).await });
    refusing.await.map_err(unfinished)
}

fn unfinished(fault: JoinError) -> ApiError {
    ApiError::internal(format!("the call was not finished: {fault}"))
}

/// The reply that every entry point gives, with the status for its outcome. It names the tool as the client did.
async fn reply(
    identity: &Identity,
    outcome: ToolOutcome,
    alias: Option<String>,
) -> Result<Response, ApiError> {
    let failure = outcome.result.as_ref().err();
    let status = match failure.map(|error| error.kind()) {
        Some(ErrorKind::ToolNotFound) => StatusCode::NOT_FOUND,
        Some(ErrorKind::PermissionDenied | ErrorKind::AuthorizationRequired) => StatusCode::FORBIDDEN,
        Some(ErrorKind::InvalidArguments) => StatusCode::UNPROCESSABLE_ENTITY,
        Some(ErrorKind::ToolRateLimited) => StatusCode::TOO_MANY_REQUESTS,
        Some(ErrorKind::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        Some(ErrorKind::ApprovalPending | ErrorKind::AnswerPending) => StatusCode::ACCEPTED,
        // The tool ran, even if it failed.
        _ => StatusCode::OK,
    };
    let busy = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
    let retry_after =
        failure.and_then(|error| error.retry_at()).map(|at| seconds_until(at, outcome.ts)).or(busy);
    let reads = Some(outcome.reads).filter(|reads| !reads.is_nothing());
    let size = outcome.result.as_ref().map_or(0, |result| result.content.iter().map(Content::size).sum());
    let write = move || {
        let mut body = outcome.to_reply();
        body.tool_name = alias.unwrap_or(body.tool_name);
        serde_json::to_vec(&body).map_err(|fault| fault.to_string())
    };
    let written = beside(size, write).await.unwrap_or_else(|| Err("the server is being stopped".to_owned()));
    let body = written.map_err(ApiError::internal)?;
    identity.hold(body.len()).map_err(|_| not_sent())?;
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(Ok(reads)) = reads.map(|reads| HeaderValue::from_str(&reads.to_string())) {
        response.headers_mut().insert(READS_HEADER, reads);
    }
    Ok(response)
}

/// The call was made, so nothing asks for it to be made again.
fn not_sent() -> ApiError {
    let message = "the call was made, but its result is not sent: as much as may be of your requests and their answers is under way, or \
                   of everybody's";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "result_not_sent", message)
}

/// Whole seconds, rounded up, and at least one.
fn seconds_until(at: Timestamp, now: Timestamp) -> u64 {
    let millis = at.duration_since(now).as_millis().max(1);
    u64::try_from(millis).unwrap_or(u64::MAX).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use registry_core::{ToolPolicy, ToolSpec};
    use serde_json::json;

    use super::*;

    #[test]
    fn m7_a_name_means_what_its_entry_point_says() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        for name in ["look", "rack.look", "far.look", "far.far.look", "far.only"] {
            registry.register(ToolSpec::new(name, no_arguments()), ToolPolicy::new(), None).unwrap();
        }
        let own = |entry: &EntryPoint, name: &str| entry.own_name(&registry, name);
        let (client, server) = (EntryPoint::Client("rack".into()), EntryPoint::Server("rack".into()));
        for (asked, by_client, by_server) in [
            ("look", "look", "look"),
            ("rack.look", "rack.look", "look"),
            ("rack.rack.look", "rack.look", "rack.look"),
            ("rack.far.only", "far.only", "far.only"),
            ("rack.gone", "rack.gone", "gone"),
            ("racklook", "racklook", "racklook"),
            ("", "", ""),
        ] {
            assert_eq!((&*own(&client, asked), &*own(&server, asked)), (by_client, by_server), "{asked}");
        }
        let module = EntryPoint::Module("far".to_owned());
        for (asked, name) in [
            ("look", "far.look"),
            ("only", "far.only"),
            ("far.only", "far.only"),
            ("far.look", "far.far.look"),
            ("rack.look", "far.rack.look"),
            ("gone", "far.gone"),
        ] {
            assert_eq!(own(&module, asked), name, "{asked}");
        }
    }

    #[test]
    fn m7_nobody_waits_longer_than_an_approval_is_open() {
        let wait = |seconds: u64, header: &str| {
            let wanted = json!({"tool_name": "look", "approval_wait_seconds": seconds});
            let header = (APPROVAL_WAIT_HEADER.parse().unwrap(), header.parse().unwrap());
            approval_wait(&serde_json::from_value(wanted).unwrap(), &HeaderMap::from_iter([header]))
        };
        assert_eq!((wait(3, "2000"), wait(3, "4000")), (Duration::from_secs(3), Duration::from_secs(4)));
        for (seconds, header) in [(u64::MAX, "0"), (0, "18446744073709551615")] {
            assert_eq!(wait(seconds, header), APPROVAL_TIMEOUT);
        }
    }

    #[test]
    fn whoever_comes_back_then_is_not_too_early() {
        let now: Timestamp = "2026-03-01T12:00:00.5Z".parse().unwrap();
        for (at, seconds) in
            [("2026-03-01T12:01:00Z", 60), ("2026-03-01T12:00:00.5Z", 1), ("2026-03-01T11:00:00Z", 1)]
        {
            assert_eq!(seconds_until(at.parse().unwrap(), now), seconds, "{at}");
        }
    }
}
