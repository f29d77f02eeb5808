//! Toolrack's server, and beside it what the suite asks for that Toolrack does not offer.

// The suite still asks for logging and sampling, which the newest revision advises against.
#![allow(deprecated)]

use std::{sync::Arc, time::Duration};

use llm_bridge::mcp::McpServer;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, InitializeRequestParams,
        InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, RequestStateCodec, ServerCapabilities, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{inputs, resources};

pub(super) struct Fixture {
    pub(super) tools: McpServer,
    pub(super) codec: Arc<RequestStateCodec>,
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.tools.get_info();
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging();
        info.capabilities = capabilities.build();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.tools.initialize(request, context).await?;
        result.capabilities = self.get_info().capabilities;
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = self.tools.list_tools(request, context).await?;
        if result.next_cursor.is_none() {
            result.tools.extend(typed::<Vec<Tool>>(own_tools())?);
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get_tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(asking) = inputs::asking().into_iter().find(|asking| asking.name == request.name) {
            return self.asks(&asking, request, &context);
        }
        let argument = |name: &str| {
            let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
            given.and_then(Value::as_str).unwrap_or_default()
        };
        let reported = match &*request.name {
            "test_tool_with_logging" | "test_logging_tool" => logs(&context).await?,
            "test_missing_capability" => needs_sampling(&context)?,
            "test_sampling" => samples(argument("prompt"), &context).await?,
            name => match inputs::form_of(name, argument("message")) {
                Some(form) => elicits(form, &context).await?,
                None => return self.tools.call_tool(request, context).await,
            },
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(reported)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.tools.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.tools.listen(context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete(resources::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if let Some(messages) = resources::prompt(&request.name, &arguments) {
            return Ok(GetPromptResponse::Complete(complete(messages)?));
        }
        if request.name != "test_input_required_result_prompt" {
            let message = format!("there is no prompt `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let answers = request.input_responses.unwrap_or_default();
        let context = answers.get("user_context").and_then(|answer| answer.pointer("/content/context"));
        match context.and_then(Value::as_str) {
            Some(context) => {
                let text = resources::text(&format!("In the context of {context}."));
                Ok(GetPromptResponse::Complete(complete(resources::messages(vec![text]))?))
            }
            None => {
                let asked = InputRequiredResult::from_input_requests(typed(inputs::prompt_asks())?);
                Ok(GetPromptResponse::InputRequired(asked))
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete(resources::resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        complete::<ReadResourceResult>(resources::read(&request.uri)?).map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        complete(json!({"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": false}}))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

impl Fixture {
    /// Asks round by round. Which round it is stands in the sealed state.
    fn asks(
        &self,
        asking: &inputs::Asking,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let round = match &request.request_state {
            None => 0,
            Some(state) => {
                let opened = self.codec.open(state);
                let opened = opened
                    .map_err(|fault| ErrorData::invalid_params(format!("`requestState`: {fault}"), None))?;
                opened.first().copied().map_or(0, usize::from)
            }
        };
        let answers: Map<String, Value> = request.input_responses.unwrap_or_default().into_iter().collect();
        let Some(asked) = asking.rounds.get(round) else {
            return Err(ErrorData::invalid_params("`requestState` is of no round of this tool", None));
        };
        let is_answered = |(key, asked): &(&str, Value)| {
            answers.get(*key).is_some_and(|answer| inputs::fits(asked, answer))
        };
        let round = if asked.iter().all(is_answered) { round + 1 } else { round };
        let Some(asked) = asking.rounds.get(round) else {
            return Ok(CallToolResult::success(vec![ContentBlock::text(inputs::reported(&answers))]).into());
        };
        let client = context.client_capabilities().unwrap_or_default();
        let wanted = asked.iter().filter(|(_, asked)| !asking.only_what_is_declared || can(&client, asked));
        let requests: Map<String, Value> =
            wanted.map(|(key, asked)| ((*key).to_owned(), asked.clone())).collect();
        let state = asking.has_state.then(|| self.codec.seal(&[u8::try_from(round).unwrap_or(u8::MAX)]));
        Ok(InputRequiredResult::new(Some(typed(Value::Object(requests))?), state).into())
    }
}

fn can(client: &ClientCapabilities, asked: &Value) -> bool {
    match asked.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => client.elicitation.is_some(),
        Some("sampling/createMessage") => client.sampling.is_some(),
        _ => client.roots.is_some(),
    }
}

/// The tools that are answered here.
fn own_tools() -> Value {
    let of_modern = inputs::asking().into_iter().map(|asking| (asking.name, ""));
    let of_both = [
        ("test_tool_with_logging", ""),
        ("test_logging_tool", ""),
        ("test_missing_capability", ""),
        ("test_sampling", "prompt"),
        ("test_elicitation", "message"),
        ("test_elicitation_sep1034_defaults", ""),
        ("test_elicitation_sep1330_enums", ""),
    ];
    let tool = |(name, argument): (&str, &str)| {
        let schema = match argument {
            "" => json!({"type": "object", "additionalProperties": false}),
            name => json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}),
        };
        json!({"name": name, "description": "For the conformance suite.", "inputSchema": schema})
    };
    of_modern.chain(of_both).map(tool).collect()
}

/// Log messages; of clients of 2026-07-28 only those that ask for them get any.
async fn logs(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let is_modern =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let wanted = !is_modern || context.meta.log_level().is_some();
    for word in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(word));
            context.peer.notify_logging_message(message).await.map_err(failed)?;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok("The tool has run.".to_owned())
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    match context.client_capabilities().and_then(|client| client.sampling) {
        Some(_) => Ok("The client can sample.".to_owned()),
        None => {
            let needed = typed(json!({"sampling": {}}))?;
            Err(ErrorData::missing_required_client_capability(needed))
        }
    }
}

async fn samples(prompt: &str, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let asked = typed(inputs::asked_of_model(prompt, 100))?;
    let answer = context.peer.create_message(asked).await.map_err(failed)?;
    let answer = serde_json::to_value(answer).map_err(failed)?;
    let said = answer.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("LLM response: {said}"))
}

async fn elicits(form: Value, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let answer = context.peer.create_elicitation(typed(form)?).await.map_err(failed)?;
    let answer = serde_json::to_value(answer).map_err(failed)?;
    let part = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let action = part("action").as_str().unwrap_or_default().to_owned();
    Ok(format!("Elicitation completed: action={action}, content={}", part("content")))
}

/// What is written as JSON here, as the library has it.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(failed)
}

/// A result, which says that it is all. For clients of the earlier revisions the library takes that out again.
fn complete<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    if let Value::Object(result) = &mut result {
        result.insert("resultType".to_owned(), "complete".into());
    }
    typed(result)
}

fn failed(fault: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(fault.to_string(), None)
}
