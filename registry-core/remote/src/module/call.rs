//! One call of a module's tool.

use async_trait::async_trait;
use registry_core::{Caller, DEFAULT_TENANT, ErrorKind, ToolContext, ToolError, ToolResult};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    client::{Client, Fault},
    intake::MAX_HOPS,
    reply,
};
use crate::tool::{Answer, Protocol, RemoteCall};

/// The argument, and the member of a request, that say for whom a call is made.
const USER_ID: &str = "user_id";

/// Through how many servers a call has come to this one. A host that may be called by another puts it among the
/// [resources](ToolContext::with_resources) of the call's context, or two that are modules of each other call in a circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hops(pub u8);

impl Hops {
    /// What a request says in its [header](super::HOPS_HEADER), where it has one. What cannot be read has come far enough.
    pub fn of_header(value: Option<&[u8]>) -> Self {
        let Some(value) = value else { return Self::default() };
        let text = str::from_utf8(value).ok();
        Self(text.and_then(|text| text.trim().parse().ok()).unwrap_or(MAX_HOPS))
    }
}

impl Client {
    async fn answer(&self, call: RemoteCall<'_>) -> Answer {
        let hops = call.context.resource::<Hops>().map_or(0, |hops| hops.0);
        if hops >= MAX_HOPS {
            return Answer::NotSent(self.too_far(hops));
        }
        let body = body(user_id(call.context), call.tool, call.arguments);
        let answer = self.execute(call.context, &body, hops, call.wait, call.timeout).await;
        let is_pending = matches!(&answer, Err(Fault::Status(StatusCode::ACCEPTED, _)));
        let answer = match answer {
            Err(Fault::Status(_, text)) if reply::is_refusal(&text) => Ok(text.into_bytes()),
            other => other,
        };
        let read = match answer {
            Ok(json) => reply::read(json).await,
            Err(fault) => Err(fault),
        };
        match read {
            Ok(result) => Answer::Answered(pending(result, is_pending)),
            Err(fault) if fault.is_outage() => Answer::Outage(fault.into()),
            Err(fault) => Answer::Answered(pending(Err(fault.error()), is_pending)),
        }
    }

    fn too_far(&self, hops: u8) -> ToolError {
        let module = self.module();
        ToolError::failed(format!(
            "the call has come through {hops} servers and does not go on to the module {module}; are two servers modules of each other?"
        ))
        .with_feedback("The tool cannot be reached from here. Do without it.")
    }
}

#[async_trait]
impl Protocol for Client {
    async fn execute(&self, call: RemoteCall<'_>) -> Answer {
        self.answer(call).await
    }
}

fn pending(result: Result<ToolResult, ToolError>, is_pending: bool) -> Result<ToolResult, ToolError> {
    result.map_err(|error| match is_pending {
        true => ToolError::new(ErrorKind::ApprovalPending, error.message()),
        false => error,
    })
}

/// The request. Who the user is comes from the context alone, whatever the arguments say.
fn body(user: Option<String>, tool: &str, arguments: &Map<String, Value>) -> Value {
    let mut arguments = arguments.clone();
    match (&user, arguments.get_mut(USER_ID)) {
        (Some(user), Some(given)) => *given = user.as_str().into(),
        _ => drop(arguments.shift_remove(USER_ID)),
    }
    let mut body = json!({"tool_name": tool, "arguments": arguments});
    if let (Some(body), Some(user)) = (body.as_object_mut(), user) {
        body.insert(USER_ID.to_owned(), user.into());
    }
    body
}

/// The name by which modules know the signed-in user. Users of two tenants may have one name, so those of another tenant than the
/// first go by both; `/` and `%` within a name are percent-encoded, so that no two users share a name.
fn user_id(context: &ToolContext) -> Option<String> {
    let user = &context.caller().user;
    if *user == Caller::default().user {
        return None;
    }
    let encode = |name: &str| name.replace('%', "%25").replace('/', "%2F");
    Some(match context.tenant() {
        DEFAULT_TENANT => encode(user),
        tenant => format!("{}/{}", encode(tenant), encode(user)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_a_header_that_cannot_be_read_goes_no_further() {
        let hops = |value: &str| Hops::of_header(Some(value.as_bytes())).0;
        assert_eq!([hops("0"), hops(" 3 "), hops("255")], [0, 3, 255]);
        assert_eq!([hops(""), hops("-1"), hops("256"), hops("x")], [MAX_HOPS; 4]);
        assert_eq!(Hops::of_header(None), Hops(0));
        assert_eq!(Hops::of_header(Some(b"\xff")), Hops(MAX_HOPS));
    }

    #[test]
    fn s11_a_user_id_among_the_arguments_is_the_signed_in_users_or_none() {
        let Value::Object(arguments) = json!({"query": "q", "user_id": "somebody"}) else { unreachable!() };
        assert_eq!(
            body(Some("ada".to_owned()), "f", &arguments),
            json!({"tool_name": "f", "arguments": {"query": "q", "user_id": "ada"}, "user_id": "ada"})
        );
        assert_eq!(body(None, "f", &arguments), json!({"tool_name": "f", "arguments": {"query": "q"}}));
    }
}
