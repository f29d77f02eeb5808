//! What the model is offered in a turn, and whose a call is.

mod definitions;

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use registry_core::{Effect, Selection, Source, Tool, ToolContext, ToolOutcome};
use toolrack_apis::{
    BadRequest, CallInput, ClientTool, Media, Request, ToolChoice, ToolInput,
    names::{self, WireNames},
};
use toolrack_dialects::{Offered, OfferedTool, Tag};

pub(super) use definitions::function_of;

use super::{
    Backend,
    found::Found,
    kept::KeptResults,
    pictures::text_and_pictures,
    prepared::{FOR_PROMPTS, Prepared},
    prompt,
    read_result::READ_RESULT,
};

/// The tools of one turn: the server's that the caller may use, and the client's own.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub(super) selection: Selection,
    /// The caller as narrowed by the request.
    pub(super) context: ToolContext,
    /// Server tools with their names on the wire.
    names: WireNames,
    /// The client's tools.
    client: Vec<ClientTool>,
    client_names: HashSet<String>,
    /// Whether only calls of offered tools are calls: a client that speaks of no tools may have a text protocol of its own.
    only_offered: bool,
    /// The server's tools that the request names.
    asked_for: BTreeSet<String>,
    prepared: Arc<Prepared>,
    /// The server's tools that are offered from the start, with their names on the wire.
    server: Vec<(Arc<Tool>, String)>,
    /// The deferred tools that are offered too by now.
    pub(super) found: Arc<Found>,
    /// What was left out of results, and whose they are.
    pub(super) kept: KeptResults,
    pub(super) owner: String,
    /// The ids of what was left out of the results of this turn.
    pub(super) left_out: Arc<Mutex<Vec<String>>>,
    /// For the scanner: all of these, and the deferred tools.
    pub(super) offered: Arc<Offered>,
    /// How to call tools by writing lines; empty where none can be.
    pub(super) tag_lines: String,
    /// Whether a call is required.
    demand: Option<Demand>,
}

/// That the model has to call a tool.
#[derive(Debug, Clone)]
enum Demand {
    /// Any tool.
    Any,
    /// The tool of this name on the wire. Servers that ignore a named choice (llama.cpp, Ollama) still know one tool when they see no
    /// other.
    Named(String),
}

/// Which round of a turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    /// From 1 on.
    pub(super) number: u32,
    /// Whether there is no other after it.
    pub(super) is_last: bool,
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
        request: &Request,
        mut context: ToolContext,
    ) -> Result<Self, BadRequest> {
        let mut client = request.tools.clone();
        // Beside a grammar there is no room for calls, unless the request names the tools.
        let is_bound = request.has_grammar && request.extension.allowed_tools.is_none();
        let mut names = WireNames::reserving(client.iter().map(|tool| tool.name.as_str()));
        let registry = backend.registry();
        if is_bound {
            context = with_only(context, Vec::new());
        }
        let select = |context: &ToolContext| {
            let selection = registry.select(context);
            let has_none = selection.tools().is_empty();
            if has_none { selection } else { selection.with_built_in(Arc::clone(&backend.read_result)) }
        };
        let mut selection = select(&context);
        let wire = names.assign_all(selection.tools().iter().map(|tool| tool.name()));
        // Who names a tool does not want to look for it.
        let narrowed = request.extension.allowed_tools.is_some();
        let mut asked_for = context.caller().allowed_tools.clone().filter(|_| narrowed).unwrap_or_default();

        let mut demand = None;
        match &request.choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => demand = Some(Demand::Any),
            ToolChoice::Named(name) => {
                let known = client.iter().any(|tool| tool.name == *name);
                let wire_name = if known { Some(name) } else { find_wire(&wire, &names, name) };
                let Some(wire_name) = wire_name else {
                    let message =
                        format!("`tool_choice` names `{name}`, which is not among the tools offered");
                    return Err(BadRequest::new("tool_choice", message));
                };
                asked_for.extend(names.original(wire_name).map(str::to_owned));
                demand = Some(Demand::Named(wire_name.clone()));
            }
            ToolChoice::None | ToolChoice::Allowed { .. } => {
                let (allowed, required): (&[String], bool) = match &request.choice {
                    ToolChoice::Allowed { names, required } => (names, *required),
                    _ => (&[], false),
                };
                let allowed: HashSet<&str> = allowed.iter().map(String::as_str).collect();
                client.retain(|tool| allowed.contains(tool.name.as_str()));
                let mine: Vec<String> = wire
                    .iter()
                    .filter(|wire| {
                        allowed.contains(wire.as_str())
                            || names.original(wire).is_some_and(|name| allowed.contains(name))
                    })
                    .filter_map(|wire| names.original(wire).map(str::to_owned))
                    .collect();
                asked_for.extend(mine.iter().cloned());
                context = with_only(context, mine);
                selection = select(&context);
                demand = required.then_some(Demand::Any);
            }
        }

        let server = first_offered(&selection, &names, &asked_for);
        let offered = Arc::new(offered(&selection, &names, &client, &server));
        let offer = Self {
            found: backend.shared.findings.of(&backend.owner(context.caller()), request).into(),
            kept: backend.shared.kept.clone(),
            owner: backend.owner(context.caller()),
            left_out: Arc::default(),
            tag_lines: prompt::tag_lines_of(server.iter().map(|(tool, _)| tool)).unwrap_or_default(),
            client_names: client.iter().map(|tool| tool.name.clone()).collect(),
            only_offered: request.tools.is_empty(),
            client,
            prepared: Arc::clone(&backend.shared.definitions),
            server,
            selection,
            context,
            names,
            asked_for,
            offered,
            demand,
        };
        if offer.demand.is_some() && !offer.has_tools() {
            let message = "`tool_choice` requires a call, but there is no tool to call; send `tools`, or leave `tool_choice` out";
            return Err(BadRequest::new("tool_choice", message));
        }
        if let Some(Demand::Named(name)) = &offer.demand {
            let mine = offer.server.iter().find(|(_, wire)| wire == name);
            // A schema that this API cannot take no other can; which one the model server has may not be known yet.
            if mine.is_some_and(|(tool, _)| offer.definition(tool, FOR_PROMPTS).is_none()) {
                let message = format!(
                    "`tool_choice` names `{name}`, whose schema cannot be sent to a model; the server's log says why"
                );
                return Err(BadRequest::new("tool_choice", message));
            }
        }
        Ok(offer)
    }

    /// Defers all tools of the server that the request does not name, whose definitions have no room in the model's context: the model looks
    /// for them. Whether there were any. How to write lines stands in the prompt already, so lines are read as before.
    pub(super) fn defer_all(&mut self) -> bool {
        let is_left = |(tool, _): &(Arc<Tool>, String)| {
            *tool.source() == Source::BuiltIn || self.asked_for.contains(tool.name())
        };
        if self.server.iter().all(is_left) {
            return false;
        }
        let Some(selection) = self.selection.deferring_all() else { return false };
        let search = selection.tools().iter().map(|tool| tool.name());
        self.names.assign_all(search.filter(|name| self.selection.get(name).is_none()));
        self.offered = Arc::new(offered(&selection, &self.names, &self.client, &self.server));
        self.server = first_offered(&selection, &self.names, &self.asked_for);
        self.selection = selection;
        true
    }

    /// Whether a round's calls are required: in the first round, and where the client brought tools until one of those is called,
    /// which ends the turn. Asked for again after that there would be no end to it.
    pub(super) fn requires_call(&self, round: Round) -> bool {
        match &self.demand {
            None => false,
            Some(Demand::Any) => round.number == 1 || !self.client.is_empty(),
            Some(Demand::Named(name)) => round.number == 1 || self.client_names.contains(name),
        }
    }

    /// Whether the turn may not end before a tool of the client is called.
    pub(super) fn owes_client_call(&self) -> bool {
        match &self.demand {
            None => false,
            Some(Demand::Any) => !self.client.is_empty(),
            Some(Demand::Named(name)) => self.client_names.contains(name),
        }
    }

    /// Whether a call of that name is one that a round requires, where it requires one.
    pub(super) fn accepts(&self, required: Option<Round>, name: &str) -> bool {
        let Some(round) = required else { return true };
        self.offered.contains(name) && self.has_in(round, &self.wire_name(name))
    }

    /// Whether a round has a tool of this name on the wire. The last one has the client's alone where one of those has to be called.
    fn has_in(&self, round: Round, name: &str) -> bool {
        if !self.requires_call(round) {
            return true;
        }
        match &self.demand {
            Some(Demand::Named(only)) => only == name,
            _ => !round.is_last || self.client.is_empty() || self.client_names.contains(name),
        }
    }

    /// The tool of that name, where the model did not get it from the start.
    fn deferred(&self, name: &str) -> Option<&Arc<Tool>> {
        self.selection
            .get(name)
            .filter(|tool| self.selection.is_deferred(tool) || is_reading(tool))
            .filter(|_| !self.asked_for.contains(name))
    }

    /// The name on the wire of the tool that reads on in shortened results; `None` where there is none.
    pub(super) fn reading(&self) -> Option<&str> {
        self.selection.get(READ_RESULT).filter(|tool| is_reading(tool))?;
        self.names.wire(READ_RESULT)
    }

    /// Whether anything is offered.
    pub(super) fn has_tools(&self) -> bool {
        !self.server.is_empty() || !self.client.is_empty()
    }

    /// Whether there are tools of the server.
    pub(super) fn has_server_tools(&self) -> bool {
        !self.server.is_empty()
    }

    /// Whether what is written as a call of that name is a call.
    pub(super) fn is_call(&self, name: &str) -> bool {
        !self.only_offered || self.offered.contains(name)
    }

    /// Whether a tool is the client's.
    pub(super) fn is_clients(&self, name: &str) -> bool {
        self.client_names.contains(name)
    }

    /// What a tool is called with.
    pub(super) fn input(&self, name: &str) -> CallInput {
        let is_text = |tool: &&ClientTool| tool.name == name && matches!(tool.input, ToolInput::Text { .. });
        if self.client.iter().any(|tool| is_text(&tool)) { CallInput::Text } else { CallInput::Json }
    }

    /// Whose tool a name is. A name that nobody offered is the registry's to answer.
    pub(super) fn target(&self, name: &str) -> Target {
        if self.client_names.contains(name) {
            return Target::Client;
        }
        Target::Server(self.names.original(name).unwrap_or(name).to_owned())
    }

    /// The server's tool of a name on the wire, if it is there and the client has none of that name.
    pub(super) fn server_tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let Target::Server(name) = self.target(name) else { return None };
        self.selection.get(&name)
    }

    /// The name that a call has in the conversation, by whichever of its names the model called the tool. A server may refuse a
    /// conversation with names that are not legal.
    pub(super) fn wire_name(&self, name: &str) -> String {
        if self.client_names.contains(name) || self.names.original(name).is_some() {
            return name.to_owned();
        }
        self.names.wire(name).map_or_else(|| names::legal(name), str::to_owned)
    }

    /// What the model learns of an outcome, with the names that it knows the tools by, and the pictures that came with it. What a search has
    /// found, or a call has named, is offered from now on.
    pub(super) fn reported(&self, outcome: &ToolOutcome) -> (String, Vec<Media>) {
        if self.selection.get(&outcome.tool_name).is_some_and(|tool| tool.is_search())
            && let Some(text) = self.found_in(outcome)
        {
            return (text, Vec::new());
        }
        if self.deferred(&outcome.tool_name).is_some() {
            self.found.add(std::slice::from_ref(&outcome.tool_name));
        }
        let error = match &outcome.result {
            Ok(result) => {
                let (text, pictures) = text_and_pictures(result);
                return match outcome.change_for_model() {
                    Some(change) => (format!("{change}\n{text}"), pictures),
                    None => (text, pictures),
                };
            }
            Err(error) => error,
        };
        if let Some(text) = self.cancelled(outcome) {
            return (text.to_owned(), Vec::new());
        }
        let names = error.nearest().iter().chain([&outcome.tool_name]);
        (self.names.in_message(outcome.for_model(), names.map(String::as_str)), Vec::new())
    }

    /// Whether a tool of the server changes something, by its name in the registry.
    pub(super) fn has_effect(&self, name: &str) -> bool {
        self.selection.get(name).is_some_and(|tool| tool.policy().effect != Effect::Read)
    }

    /// Whether a call of a tool of the server can go on after an interruption, by its name in the registry.
    pub(super) fn is_resumable(&self, name: &str) -> bool {
        self.selection.get(name).is_some_and(|tool| tool.policy().resumable)
    }

    /// The tools that a search has found, as they are called on the wire; `None` where it has found nothing.
    fn found_in(&self, outcome: &ToolOutcome) -> Option<String> {
        let found = outcome.result.as_ref().ok()?.value.get("tools")?.as_array()?;
        let names = found.iter().filter_map(|tool| tool.get("name")?.as_str());
        // What came after this turn had begun is not in it.
        let tools: Vec<&Arc<Tool>> = names.filter_map(|name| self.selection.get(name)).collect();
        let names: Vec<String> = tools.iter().map(|tool| tool.name().to_owned()).collect();
        self.found.add(&names);
        let mut functions = String::new();
        for tool in tools {
            if let (Some(definition), Some(wire)) =
                (self.definition(tool, FOR_PROMPTS), self.names.wire(tool.name()))
            {
                functions.push('\n');
                functions.push_str(&definition.function(wire).to_string());
            }
        }
        let reported = "These tools can be called from now on, in the same way as the others:";
        (!functions.is_empty()).then(|| format!("{reported}{functions}"))
    }
}

/// Whether a tool is the one that reads on in shortened results, and not another of that name.
fn is_reading(tool: &Tool) -> bool {
    *tool.source() == Source::BuiltIn && tool.name() == READ_RESULT
}

/// The tools of the server that are offered from the start, with their names on the wire.
fn first_offered(
    selection: &Selection,
    names: &WireNames,
    asked_for: &BTreeSet<String>,
) -> Vec<(Arc<Tool>, String)> {
    let is_hidden = |tool: &Tool| selection.is_deferred(tool) && !asked_for.contains(tool.name());
    let has_hidden = selection.tools().iter().any(|tool| is_hidden(tool));
    let is_offered = |tool: &Tool| match tool {
        // Where there is nothing to find, or to read on in, they are of no use.
        tool if tool.is_search() => has_hidden || asked_for.contains(tool.name()),
        tool if is_reading(tool) => asked_for.contains(tool.name()),
        tool => !is_hidden(tool),
    };
    let tools = selection.tools().iter().filter(|tool| is_offered(tool));
    tools.filter_map(|tool| Some((Arc::clone(tool), names.wire(tool.name())?.to_owned()))).collect()
}

/// What the scanner knows of: every tool, as a deferred one can be called too; but no line that was not in the prompt, with the tools that are
/// `described` there.
fn offered(
    selection: &Selection,
    names: &WireNames,
    client: &[ClientTool],
    described: &[(Arc<Tool>, String)],
) -> Offered {
    let is_described = |tool: &Tool| described.iter().any(|(other, _)| other.name() == tool.name());
    let named = selection.tools().iter().filter_map(|tool| Some((tool, names.wire(tool.name())?)));
    let server = named.flat_map(|(tool, wire)| {
        let named = |name: &str| OfferedTool::new(name).schema(Arc::clone(&tool.spec().input_schema));
        let mut offered = named(wire);
        offered.tag = tool.policy().text_tag.filter(|_| is_described(tool)).map(|declared| {
            let mut tag = Tag::new(declared.tag_prefix);
            tag.arg_pattern = declared.arg_pattern.to_owned();
            tag.arg_groups = declared.arg_groups.iter().map(|group| (*group).to_owned()).collect();
            tag.strip_from_display = declared.strip_from_display;
            tag
        });
        // A model that knows a tool by its own name with the dot may use that, where the client has none of that name.
        let is_free = !client.iter().any(|client| client.name == tool.name());
        let own = (tool.name() != wire && is_free).then(|| named(tool.name()));
        [Some(offered), own].into_iter().flatten()
    });
    let client = client.iter().map(|tool| {
        let mut offered = OfferedTool::new(&tool.name);
        if let ToolInput::Json { schema, .. } = &tool.input {
            offered.schema.clone_from(schema);
        }
        offered
    });
    Offered::new(server.chain(client))
}

/// The same context with these tools of the server alone.
fn with_only(context: ToolContext, tools: Vec<String>) -> ToolContext {
    let caller = context.caller().clone().only_tools(tools);
    context.with_caller(caller)
}

/// The wire name of a server tool that was given by either of its names.
fn find_wire<'w>(wire: &'w [String], names: &WireNames, name: &str) -> Option<&'w String> {
    wire.iter().find(|wire| *wire == name || names.original(wire) == Some(name))
}
