//! What the model is offered in a turn, and whose a call is.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use registry_core::{Selection, Tool, ToolContext, ToolOutcome};
use serde_json::{Value, json};
use toolrack_apis::{
    names::{self, WireNames},
    openai::{BadRequest, ChatRequest, ClientTool, ToolChoice},
};
use toolrack_dialects::{Offered, OfferedTool, Tag};

use crate::chat::{Backend, found::Found, prepared::PreparedDefinitions, prompt};

/// The tools of one turn: the server's that the caller may use, and the client's own.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) selection: Selection,
    /// The caller as narrowed by the request.
    pub(super) context: ToolContext,
    /// Server tools with their names on the wire.
    names: WireNames,
    client: HashSet<String>,
    /// The server's tools that the request names.
    asked_for: BTreeSet<String>,
    prepared: Arc<PreparedDefinitions>,
    /// The definitions that are offered from the start as one JSON array; `None` where nothing is offered.
    definitions: Option<String>,
    /// The one definition for the first round, where the client named a tool.
    named: Option<String>,
    /// The deferred tools that are offered too by now.
    found: Found,
    /// For the scanner: all of these, and the deferred tools.
    pub(super) offered: Arc<Offered>,
    /// How to call tools by writing lines; empty where none can be.
    pub(super) tag_lines: String,
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
        let mut wire = names.assign_all(selection.tools().iter().map(|tool| tool.name()));
        // Who names a tool does not want to look for it.
        let narrowed = request.toolrack.allowed_tools.is_some();
        let mut asked_for = context.caller().allowed_tools.clone().filter(|_| narrowed).unwrap_or_default();

        let mut choice = None;
        let mut only = None;
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
                asked_for.extend(names.original(wire_name).map(str::to_owned));
                only = Some(wire_name.clone());
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
                asked_for.extend(mine.iter().cloned());
                let caller = context.caller().clone().only_tools(mine);
                context = context.with_caller(caller);
                selection = registry.select(&context);
                wire.retain(|wire| names.original(wire).is_some_and(|name| selection.get(name).is_some()));
                choice = required.then(|| json!("required"));
            }
        }

        let is_hidden = |tool: &Tool| selection.is_deferred(tool) && !asked_for.contains(tool.name());
        let has_hidden = selection.tools().iter().any(|tool| is_hidden(tool));
        let is_told = |tool: &Tool| match tool.is_search() {
            // Where there is nothing to find it is of no use.
            true => has_hidden || asked_for.contains(tool.name()),
            false => !is_hidden(tool),
        };
        let reported: Vec<(&Arc<Tool>, &String)> =
            selection.tools().iter().zip(&wire).filter(|(tool, _)| is_told(tool)).collect();
        let tag_lines = prompt::tag_lines_of(reported.iter().map(|(tool, _)| *tool)).unwrap_or_default();
        let offered = Arc::new(offered(&selection, &wire, &client, is_told));
        let prepared = &backend.shared.definitions;
        let definitions = write_definitions(prepared, &selection, reported.iter().copied(), &client);
        // Servers that ignore a named choice (llama.cpp, Ollama) still know one tool when they see no other.
        let mut named = None;
        if let Some(only) = only {
            let client: Vec<_> = client.iter().copied().filter(|tool| tool.name == only).collect();
            let mine = reported.iter().copied().filter(|(_, wire)| **wire == only);
            named = write_definitions(prepared, &selection, mine, &client);
            if named.is_none() {
                let message = format!(
                    "`tool_choice` names `{only}`, whose schema cannot be sent to a model; the server's log says why"
                );
                return Err(BadRequest { param: "tool_choice", message });
            }
        }
        Ok(Self {
            found: backend.shared.findings.of(&backend.owner(context.caller()), request),
            client: client.into_iter().map(|tool| tool.name.clone()).collect(),
            prepared: Arc::clone(prepared),
            selection,
            context,
            names,
            asked_for,
            definitions,
            named,
            offered,
            tag_lines,
            choice,
        })
    }

    /// The definitions for a round, as one JSON array; `None` where nothing is offered. What the conversation has found stands at
    /// the end, so that all before it stays what it was, for servers that keep what they have read.
    pub(super) fn definitions(&self, round: u32) -> Option<Cow<'_, str>> {
        self.definitions_with(round, || self.found.names())
    }

    /// The same for a prompt, where the results of this turn's searches tell the rest.
    pub(super) fn definitions_told(&self, round: u32) -> Option<Cow<'_, str>> {
        self.definitions_with(round, || self.found.names_before())
    }

    fn definitions_with(&self, round: u32, found: impl FnOnce() -> Vec<String>) -> Option<Cow<'_, str>> {
        if let Some(named) = self.named.as_deref().filter(|_| round == 1) {
            return Some(named.into());
        }
        let all = self.definitions.as_deref()?;
        let found: Vec<_> = found().iter().filter_map(|name| self.deferred(name)).cloned().collect();
        if found.is_empty() {
            return Some(all.into());
        }
        let mut json = all.strip_suffix(']').unwrap_or(all).to_owned();
        for tool in found {
            if let (Some(function), Some(wire)) =
                (self.prepared.function(&tool), self.names.wire(tool.name()))
            {
                json.push(',');
                function.write_definition(wire, &mut json);
            }
        }
        json.push(']');
        Some(json.into())
    }

    /// The tool of that name, where the model did not get it from the start.
    fn deferred(&self, name: &str) -> Option<&Arc<Tool>> {
        self.selection
            .get(name)
            .filter(|tool| self.selection.is_deferred(tool) && !self.asked_for.contains(name))
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

    /// What the model learns of an outcome, with the names that it knows the tools by. What a search has found, or a call has
    /// named, is offered from now on.
    pub(super) fn reported(&self, outcome: &ToolOutcome) -> String {
        if self.selection.get(&outcome.tool_name).is_some_and(|tool| tool.is_search())
            && let Some(text) = self.told_search(outcome)
        {
            return text;
        }
        if self.deferred(&outcome.tool_name).is_some() {
            self.found.add(std::slice::from_ref(&outcome.tool_name));
        }
        let text = outcome.for_model();
        let Err(error) = &outcome.result else { return text };
        let names = error.nearest().iter().chain([&outcome.tool_name]);
        names.fold(text, |text, name| match self.names.wire(name) {
            Some(wire) if wire != name => text.replace(&format!("`{name}`"), &format!("`{wire}`")),
            _ => text,
        })
    }

    /// The tools that a search has found, as they are called on the wire; `None` where it has found nothing.
    fn told_search(&self, outcome: &ToolOutcome) -> Option<String> {
        let found = outcome.result.as_ref().ok()?.value.get("tools")?.as_array()?;
        let names = found.iter().filter_map(|tool| tool.get("name")?.as_str());
        // What came after this turn had begun is not in it.
        let tools: Vec<&Arc<Tool>> = names.filter_map(|name| self.selection.get(name)).collect();
        let names: Vec<String> = tools.iter().map(|tool| tool.name().to_owned()).collect();
        self.found.add(&names);
        let mut functions = String::new();
        for tool in tools {
            if let (Some(function), Some(wire)) = (self.prepared.function(tool), self.names.wire(tool.name()))
            {
                functions.push('\n');
                function.write(wire, &mut functions);
            }
        }
        let reported = "These tools can be called from now on, in the same way as the others:";
        (!functions.is_empty()).then(|| format!("{reported}{functions}"))
    }
}

/// What the scanner knows of: every tool, as a deferred one can be called too; but no line that was not in the prompt.
fn offered(
    selection: &Selection,
    wire: &[String],
    client: &[&ClientTool],
    is_told: impl Fn(&Tool) -> bool,
) -> Offered {
    let server = selection.tools().iter().zip(wire).flat_map(|(tool, wire)| {
        let schema = Some(Arc::clone(&tool.spec().input_schema));
        let tag = tool.policy().text_tag.filter(|_| is_told(tool)).map(|tag| Tag {
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

/// Definitions as one JSON array; `None` where there is none.
fn write_definitions<'a>(
    prepared: &PreparedDefinitions,
    selection: &Selection,
    server: impl IntoIterator<Item = (&'a Arc<Tool>, &'a String)>,
    client: &[&ClientTool],
) -> Option<String> {
    let mut json = String::new();
    for (tool, wire) in server {
        let function = match tool.is_search() {
            true => prepared.described(tool, selection.description(tool).into_owned()),
            false => prepared.function(tool),
        };
        if let Some(function) = function {
            json.push(if json.is_empty() { '[' } else { ',' });
            function.write_definition(wire, &mut json);
        }
    }
    for tool in client {
        json.push(if json.is_empty() { '[' } else { ',' });
        json.push_str(&tool.definition.to_string());
    }
    (!json.is_empty()).then(|| json + "]")
}

/// The wire name of a server tool that was given by either of its names.
fn find_wire<'w>(wire: &'w [String], names: &WireNames, name: &str) -> Option<&'w String> {
    wire.iter().find(|wire| *wire == name || names.original(wire) == Some(name))
}
