//! A call that needs the user's account elsewhere: clients that open addresses are asked to open the page on which the user lets this server in.
//! Other clients have the link in the text of the error.

use std::collections::BTreeMap;

use registry_core::{ToolOutcome, random_id};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResponse, ElicitRequest, ElicitRequestParams, ErrorCode, InputRequest, InputRequiredResult,
        InputResponses, ProtocolVersion,
    },
    service::RequestContext,
};
use serde_json::json;

/// The key of the request among those of one result.
const KEY: &str = "authorization";
/// The protocol's error for it, before revision 2026-07-28.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Whether a repeated call comes from having been asked. It is not asked again.
pub(super) fn was_asked(answers: Option<&InputResponses>) -> bool {
    answers.is_some_and(|answers| answers.get(KEY).is_some())
}

/// Asks the client to open the page; `None` where the call needs none, or the client opens none.
pub(super) fn ask(
    outcome: &ToolOutcome,
    request: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let error = outcome.result.as_ref().err()?;
    let url = error.authorize_at()?.to_owned();
    request.client_capabilities()?.elicitation?.url?;
    let message = error.message().to_owned();
    let is_result = request
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if is_result {
        let (meta, elicitation_id) = (None, String::new());
        let form = ElicitRequestParams::UrlElicitationParams { meta, message, url, elicitation_id };
        let requests =
            BTreeMap::from([(KEY.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        return Some(Ok(InputRequiredResult::new(Some(requests), None).into()));
    }
    let id = random_id().unwrap_or_default();
    let asked =
        json!({"elicitations": [{"mode": "url", "elicitationId": id, "url": url, "message": message}]});
    Some(Err(ErrorData::new(URL_ELICITATION_REQUIRED, message, Some(asked))))
}
