//! What the model is offered in a turn, and whose a call is.

use std::collections::HashSet;
use std::sync::Arc;

use registry_core::{Selection, Tool, ToolContext, ToolOutcome};
use serde_json::{Value, json};

use crate::{
    chat::Backend,
    dialect::{Offered, OfferedTool, Tag},
    provider::{
        names::{self, WireNames},
        openai::{BadRequest, ChatRequest, ClientTool, ToolChoice},
    },
};

/// The tools of one turn: the server's that the caller may use, and the client's own.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) selection: Selection,
    /// The caller as narrowed by the request.
    pub(super) context: ToolContext,
    /// Server tools with their names on the wire.
    names: WireNames,
    client: HashSet<String>,
    /// All definitions as one JSON array; `None` where nothing is offered.
    definitions: Option<String>,
    /// The one definition for the first round, where the client named a tool.
    named: Option<String>,
    /// The same for the scanner.
    pub(super) offered: Arc<Offered>,
    /// What the client asked for, in the words of the API, for the first round.
    pub(super) choice: Option<Value>,
}

/// Whose tool a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The server's, by its name in the registry.
    Server(String),
    /// The client's.
    Client,
}

impl Offer {
    /// Puts together what the request and the server have to offer.
    pub(super) fn new(
        backend: &Backend,
        request: &ChatRequest,
        mut context: ToolContext,
    ) -> Result<Self, BadRequest> {
        let mut client: Vec<&ClientTool> = request.tools.iter().collect();
        let mut names = WireNames::reserving(client.iter().map(|tool| tool.name.as_str()));
        let registry = backend.registry();
        let mut selection = registry.select(&context);
        let mut wire: Vec<String> = selection.tools().iter().map(|tool| names.assign(tool.name())).collect();

        let mut choice = None;
        let mut named = None;
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => choice = Some(json!("required")),
            ToolChoice::Named(name) => {
                let known = client.iter().any(|tool| tool.name == *name);
                let wire_name = if known { Some(name) } else { find_wire(&wire, &names, name) };
                let Some(wire_name) = wire_name else {
                    let message =
                        format!("`tool_choice` names `{name}`, which is not among the tools offered");
                    return Err(BadRequest { param: "tool_choice", message });
                };
                // Servers that ignore a named choice (llama.cpp, Ollama) still know one tool when they see no other.
                let only = wire.iter().position(|name| name == wire_name);
                let mine = only.and_then(|at| selection.tools().get(at)).map(|tool| (tool, wire_name));
                let clients = client.iter().copied().filter(|tool| tool.name == *wire_name);
                named = Self::write_definitions(mine, clients);
                choice = Some(json!("required"));
            }
            ToolChoice::None | ToolChoice::Allowed { .. } => {
                let (allowed, required): (&[String], bool) = match &request.tool_choice {
                    ToolChoice::Allowed { names, required } => (names, *required),
                    _ => (&[], false),
                };
                client.retain(|tool| allowed.contains(&tool.name));
                let mine: Vec<String> = wire
                    .iter()
                    .filter(|wire| {
                        allowed.contains(wire)
                            || names.original(wire).is_some_and(|name| allowed.iter().any(|a| a == name))
                    })
                    .filter_map(|wire| names.original(wire).map(str::to_owned))
                    .collect();
                let caller = context.caller().clone().only_tools(mine);
                context = context.with_caller(caller);
                selection = registry.select(&context);
                wire.retain(|wire| names.original(wire).is_some_and(|name| selection.get(name).is_some()));
                choice = required.then(|| json!("required"));
            }
        }

        let offered = Arc::new(Self::offered(&selection, &wire, &client));
        let definitions =
            Self::write_definitions(selection.tools().iter().zip(&wire), client.iter().copied());
        let client = client.into_iter().map(|tool| tool.name.clone()).collect();
        Ok(Self { selection, context, names, client, definitions, named, offered, choice })
    }

    fn offered(selection: &Selection, wire: &[String], client: &[&ClientTool]) -> Offered {
        let server = selection.tools().iter().zip(wire).flat_map(|(tool, wire)| {
            let schema = Some(Arc::clone(&tool.spec().input_schema));
            let tag = tool.policy().text_tag.map(|tag| Tag {
                tag_prefix: tag.tag_prefix.to_owned(),
                arg_pattern: tag.arg_pattern.to_owned(),
                arg_groups: tag.arg_groups.iter().map(|group| (*group).to_owned()).collect(),
                strip_from_display: tag.strip_from_display,
            });
            // A model that knows a tool by its own name with the dot may use that, where the client has none of that name.
            let is_free = !client.iter().any(|client| client.name == tool.name());
            let own = (tool.name() != wire && is_free).then(|| OfferedTool {
                name: tool.name().to_owned(),
                schema: schema.clone(),
                tag: None,
            });
            [Some(OfferedTool { name: wire.clone(), schema, tag }), own].into_iter().flatten()
        });
        let client = client.iter().map(|tool| OfferedTool {
            name: tool.name.clone(),
            schema: tool.parameters.clone().map(Arc::new),
            tag: None,
        });
        Offered::new(server.chain(client))
    }

    fn write_definitions<'a>(
        server: impl IntoIterator<Item = (&'a Arc<Tool>, &'a String)>,
        client: impl IntoIterator<Item = &'a ClientTool>,
    ) -> Option<String> {
        let mut json = String::new();
        for (tool, wire) in server {
            json.push(if json.is_empty() { '[' } else { ',' });
            tool.write_definition(wire, &mut json);
        }
        for tool in client {
            json.push(if json.is_empty() { '[' } else { ',' });
            json.push_str(&tool.definition.to_string());
        }
        (!json.is_empty()).then(|| json + "]")
    }

    /// The definitions for a round, as one JSON array; `None` where nothing is offered.
    pub(super) fn definitions(&self, round: u32) -> Option<&str> {
        self.named.as_deref().filter(|_| round == 1).or(self.definitions.as_deref())
    }

    /// Whether anything is offered.
    pub(super) fn has_tools(&self) -> bool {
        self.definitions.is_some()
    }

    /// Whose tool a name is. A name that nobody offered is the registry's to answer.
    pub(super) fn target(&self, name: &str) -> Target {
        if self.client.contains(name) {
            return Target::Client;
        }
        Target::Server(self.names.original(name).unwrap_or(name).to_owned())
    }

    /// The name that a call has in the conversation, by whichever of its names the model called the tool. A server may refuse a
    /// conversation with names that are not legal.
    pub(super) fn wire_name(&self, name: &str) -> String {
        if self.client.contains(name) || self.names.original(name).is_some() {
            return name.to_owned();
        }
        self.names.wire(name).map_or_else(|| names::legal(name), str::to_owned)
    }

    /// What the model is told of an outcome, with the names that it knows the tools by.
    pub(super) fn told(&self, outcome: &ToolOutcome) -> String {
        let text = outcome.for_model();
        let Err(error) = &outcome.result else { return text };
        let names = error.nearest().iter().chain([&outcome.tool_name]);
        names.fold(text, |text, name| match self.names.wire(name) {
            Some(wire) if wire != name => text.replace(&format!("`{name}`"), &format!("`{wire}`")),
            _ => text,
        })
    }
}

/// The wire name of a server tool that was given by either of its names.
fn find_wire<'w>(wire: &'w [String], names: &WireNames, name: &str) -> Option<&'w String> {
    wire.iter().find(|wire| *wire == name || names.original(wire) == Some(name))
}
