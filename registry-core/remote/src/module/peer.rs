//! One module as calls see it: how many run there, whether it is left alone, and the request itself.

use std::{sync::Arc, time::Duration};

use registry_core::{
    BoxFuture, Caller, DEFAULT_TENANT, ErrorKind, Handler, Registry, ToolContext, ToolError, ToolResult,
    clock::Clock,
};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    breaker::Outage,
    client::{Client, Fault},
    intake::MAX_HOPS,
    reply,
    trial::Guarded,
};
use crate::remote_call::RemoteCall;
use crate::slots::Slots;

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

pub(super) struct Peer {
    pub(super) name: Arc<str>,
    pub(super) client: Client,
    pub(super) guarded: Guarded,
    pub(super) slots: Slots,
    pub(super) timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Peer {
    /// Makes the call once; `body` is the request, and `wait` how long a person there may be waited for.
    async fn call(
        &self,
        context: &ToolContext,
        body: &Value,
        wait: Duration,
    ) -> Result<ToolResult, ToolError> {
        let hops = context.resource::<Hops>().map_or(0, |hops| hops.0);
        if hops >= MAX_HOPS {
            return Err(self.too_far(hops));
        }
        let _slot = self.slots.acquire().await.ok_or_else(|| self.busy())?;
        // The wait for a turn says nothing about the module.
        let deadline = Instant::now() + self.timeout;
        let trial = self.guarded.admit(context, self.timeout, deadline)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = self.client.execute(body, hops, wait, left).await;
        let is_pending = matches!(&answer, Err(Fault::Status(StatusCode::ACCEPTED, _)));
        let answer = match answer {
            Err(Fault::Status(_, text)) if reply::is_refusal(&text) => Ok(text.into_bytes()),
            // What was left of it says nothing to anybody.
            Err(Fault::Timeout(_)) => Err(Fault::Timeout(self.timeout)),
            other => other,
        };
        let outage = answer.as_ref().err().filter(|fault| fault.is_outage());
        trial.end(outage.map(Outage::from));
        let result = answer.and_then(|json| reply::read(&json));
        let result = result.unwrap_or_else(|fault| match fault {
            Fault::Timeout(limit) => Err(ToolError::timed_out(limit)),
            other => Err(reply::error_of(&other)),
        });
        result.map_err(|error| match is_pending {
            true => ToolError::new(ErrorKind::ApprovalPending, error.message()),
            false => error,
        })
    }

    fn too_far(&self, hops: u8) -> ToolError {
        let module = &self.name;
        ToolError::failed(format!(
            "the call has come through {hops} servers and does not go on to the module {module}; are two servers modules of each other?"
        ))
        .with_feedback("The tool cannot be reached from here. Do without it.")
    }

    fn busy(&self) -> ToolError {
        let module = &self.name;
        ToolError::new(ErrorKind::Busy, format!("as many calls of the module {module} run and wait as may"))
            .retryable()
            .with_feedback("The tool has too much to do now. Try again later, or do without it.")
    }
}

/// The request. Who the user is comes from the context alone, whatever the arguments say. Users of two tenants may have one name, so
/// that those of another than the first go by both.
fn body(tenant: &str, caller: &Caller, tool: &str, arguments: Map<String, Value>) -> Value {
    let mut body = json!({"tool_name": tool, "arguments": arguments});
    if let Some(body) = body.as_object_mut().filter(|_| caller.user != Caller::default().user) {
        let user = match tenant {
            DEFAULT_TENANT => caller.user.clone(),
            other => format!("{other}/{}", caller.user),
        };
        body.insert("user_id".to_owned(), user.into());
    }
    body
}

/// A tool of a module.
pub(super) struct RemoteTool {
    pub(super) peer: Arc<Peer>,
    pub(super) wire_name: String,
    /// Whether it is made again while a person on the module's side has not answered.
    pub(super) may_wait: bool,
    /// Why it may not be called until somebody has looked at it.
    pub(super) quarantine: Option<String>,
}

impl RemoteTool {
    async fn run(&self, context: &ToolContext, body: Value) -> Result<ToolResult, ToolError> {
        let peer = &*self.peer;
        let mut call = RemoteCall {
            context,
            tool: &self.wire_name,
            place: &peer.name,
            may_wait: self.may_wait,
            timeout: peer.timeout,
            waits_since: None,
        };
        let wait = if self.may_wait { call.wait_there() } else { Duration::ZERO };
        loop {
            if let Some(answer) = call.answered(peer.call(context, &body, wait)).await {
                return answer;
            }
        }
    }
}

impl Handler for RemoteTool {
    fn unavailable(&self, _: &ToolContext) -> Option<String> {
        self.quarantine.clone()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let tenant = context.registry().map_or(DEFAULT_TENANT, Registry::tenant);
        let body = body(tenant, context.caller(), &self.wire_name, arguments);
        Box::pin(self.run(context, body))
    }
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
}
