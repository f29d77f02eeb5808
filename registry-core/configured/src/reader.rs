//! Tools that are defined in a file: `mock`, `builtin` and `internal`.

use std::{collections::HashMap, path::Path, str::FromStr, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use registry_core::{
    ConfigFault, ConfiguredTool, ConfiguredTools, Effect, Handler, Permission, Tool, ToolContext, ToolFuture,
    ToolPolicy, ToolResult, ToolSpec, alias_of,
    flow::{Reads, Sends},
    nearest,
    schema::check_input,
};

use crate::document::{self, Data, Format, Node};

/// The answer to a kind of tool that is still to come.
const HTTP: &str = "HTTP tools not yet supported (coming in v2)";

const KEYS: &str = "
    name description type handler parameters implementation title version tags deprecated output_schema
    permission cost effect reads sends timeout_seconds cooldown_seconds daily_limit max_concurrent requires_gate idempotent deferred
    ends_turn
";

/// What handlers a file may name.
pub(crate) struct Known<'a> {
    /// The compiled tool of that name.
    pub(crate) compiled: &'a dyn Fn(&str) -> Option<Arc<Tool>>,
    /// The handlers that the host has registered.
    pub(crate) internal: &'a HashMap<String, Arc<dyn Handler>>,
}

/// Reads the tools of a file: those that can be used, and everything that is wrong with the others.
pub(crate) fn read(file: &Path, text: &str, known: &Known<'_>) -> ConfiguredTools {
    let name: Arc<str> = file.display().to_string().into();
    let mut reader = Reader { file: name, known, tool: None, faults: Vec::new() };
    let tools = reader.tools(file, text).unwrap_or_default();
    ConfiguredTools { tools, faults: reader.faults }
}

struct Reader<'a> {
    file: Arc<str>,
    known: &'a Known<'a>,
    tool: Option<String>,
    faults: Vec<ConfigFault>,
}

impl Reader<'_> {
    /// Notes a fault, in place of a value.
    fn fault<T>(&mut self, line: u32, message: impl Into<String>) -> Option<T> {
        let (file, tool) = (Arc::clone(&self.file), self.tool.clone());
        self.faults.push(ConfigFault { file, line, tool, message: message.into() });
        None
    }

    fn tools(&mut self, file: &Path, text: &str) -> Option<Vec<ConfiguredTool>> {
        let document = match Format::of_file(file).map(|format| document::read(text, format)) {
            Ok(Ok(document)) => document,
            Ok(Err(fault)) => return self.fault(fault.line, fault.message),
            Err(message) => return self.fault(1, message),
        };
        // JSON and YAML files may be the list itself.
        let list = match &document.data {
            Data::List(_) => Some(&document),
            _ => document.get("tools"),
        };
        let Some(list) = list else {
            let Data::Table(members) = &document.data else {
                let message = format!("there has to be an array of tools and it is {}", document.kind());
                return self.fault(document.line, message);
            };
            // An empty file has no tools yet.
            let (name, node) = members.iter().find(|(name, _)| name == "tool").or(members.first())?;
            let hint = if name == "tool" { "; is it `tool` that is meant?" } else { "" };
            return self.fault(node.line, format!("there is no array `tools`{hint}"));
        };
        match &list.data {
            Data::List(tools) => Some(tools.iter().filter_map(|tool| self.tool(tool)).collect()),
            _ => self.fault(list.line, format!("`tools` has to be an array of tools and is {}", list.kind())),
        }
    }

    fn tool(&mut self, node: &Node) -> Option<ConfiguredTool> {
        let before = self.faults.len();
        self.tool = match node.get("name").map(Node::to_json) {
            Some(Value::String(name)) if !name.trim().is_empty() => Some(name),
            _ => None,
        };
        let Data::Table(members) = &node.data else {
            return self.fault(node.line, format!("a tool has to be an object and is {}", node.kind()));
        };
        self.known_keys(members, KEYS);
        let spec = self.spec(node);
        // What is wrong in one part is no reason to leave out what is wrong in another.
        let implementation = self.implementation(node);
        let base = implementation.as_ref().map_or(ToolPolicy::new(), |(_, policy)| *policy);
        let policy = self.policy(node, base);
        if let Some(effect) = node.get("effect")
            && policy.effect != Effect::Read
            && policy.permission == Permission::Guest
            && node.get("permission").is_none()
        {
            let message = "a tool that changes something has to say who may call it: add `permission = \"user\"`, or another level";
            self.fault::<()>(effect.line, message);
        }
        self.tool = None;
        let (spec, (handler, _)) = (spec?, implementation?);
        let whole = self.faults.len() == before;
        let file = Arc::clone(&self.file);
        whole.then_some(ConfiguredTool { spec, policy, handler, file, line: node.line })
    }

    fn known_keys(&mut self, members: &[(String, Node)], keys: &str) {
        let keys: Vec<_> = keys.split_whitespace().collect();
        for (key, value) in members.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
            let near = nearest(key, keys.iter().copied());
            let hint = near.first().map_or_else(
                || format!("the keys are {}", keys.join(", ")),
                |near| format!("is `{near}` meant?"),
            );
            self.fault::<()>(value.line, format!("unknown key `{key}`: {hint}"));
        }
    }

    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        let value = node.get(key)?;
        match &value.data {
            Data::Scalar(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            Data::Scalar(Value::String(_)) => self.fault(value.line, format!("`{key}` is empty")),
            _ => self.fault(value.line, format!("`{key}` has to be a string and is {}", value.kind())),
        }
    }

    fn required(&mut self, node: &Node, key: &str) -> Option<String> {
        match node.get(key) {
            Some(_) => self.text(node, key),
            None => self.fault(node.line, format!("`{key}` is missing")),
        }
    }

    /// A member of `implementation`.
    fn required_of_implementation(&mut self, implementation: &Node, key: &str) -> Option<String> {
        match implementation.get(key) {
            Some(_) => self.text(implementation, key),
            None => self.fault(implementation.line, format!("`implementation.{key}` is missing")),
        }
    }

    /// The handler that the tool itself names. It is wanted of every tool.
    fn own_handler(&mut self, node: &Node) -> Option<String> {
        let below = node.get("implementation").and_then(|implementation| implementation.get("handler"));
        if node.get("handler").is_none() && below.is_some() {
            let message =
                "`handler` is missing: it is wanted beside `implementation.handler`, with the same name";
            return self.fault(node.line, message);
        }
        self.required(node, "handler")
    }

    fn spec(&mut self, node: &Node) -> Option<ToolSpec> {
        let (name, description) = (self.required(node, "name"), self.required(node, "description"));
        if name.as_ref().is_some_and(|name| name.chars().any(char::is_control)) {
            self.fault::<()>(node.line, "`name` has a control character in it, such as the end of a line");
        }
        if let Some(kind) = self.required(node, "type").filter(|kind| kind != "function") {
            let line = node.get("type").map_or(node.line, |node| node.line);
            self.fault::<()>(line, format!("`type` has to be \"function\" and is \"{kind}\""));
        }
        let parameters = match node.get("parameters") {
            None => {
                self.fault(node.line, "`parameters` is missing: a JSON Schema with `\"type\": \"object\"`")
            }
            Some(schema) => self.parameters(schema),
        };
        let tags = self.value(node, "tags", "an array of strings").unwrap_or_default();
        let spec = ToolSpec {
            title: self.text(node, "title"),
            version: self.text(node, "version"),
            deprecated: self.text(node, "deprecated"),
            output_schema: node.get("output_schema").map(Node::to_json).unwrap_or_default(),
            description,
            tags,
            ..ToolSpec::new(name?, parameters?)
        };
        Some(spec)
    }

    fn parameters(&mut self, node: &Node) -> Option<Value> {
        let schema = node.to_json();
        let fault = match (&schema, schema.get("type")) {
            (Value::Object(_), Some(Value::String(kind))) if kind == "object" => check_input(&schema).err(),
            (Value::Object(_), _) => Some("`parameters.type` has to be \"object\"".to_owned()),
            _ => Some(format!("`parameters` has to be a JSON Schema and is {}", node.kind())),
        };
        match fault {
            None => Some(schema),
            Some(message) => self.fault(node.line, message),
        }
    }

    /// The code behind the tool, and the rules that it brings along.
    fn implementation(&mut self, node: &Node) -> Option<(Arc<dyn Handler>, ToolPolicy)> {
        let Some(implementation) = node.get("implementation") else {
            return self.fault(
                node.line,
                "`implementation` is missing: write its `type`, which is mock, builtin or internal",
            );
        };
        let line = implementation.line;
        let own = self.own_handler(node);
        let kind = self.required_of_implementation(implementation, "type")?;
        // A kind that is not there yet has keys that are not there yet.
        if let Data::Table(members) = &implementation.data
            && kind != "http"
        {
            self.known_keys(members, "type handler mock_response");
        }
        match kind.as_str() {
            "mock" => match implementation.get("mock_response") {
                // It is the file's own answer, and goes nowhere.
                Some(response) => {
                    let (reads, sends) = (Some(Reads::NOTHING), Some(Sends::Nothing));
                    Some((
                        Arc::new(Mock(response.to_json())),
                        ToolPolicy { reads, sends, ..ToolPolicy::new() },
                    ))
                }
                None => self.fault(
                    line,
                    "`implementation.mock_response` is missing: any JSON value, which every call gets",
                ),
            },
            "builtin" => {
                let name = self.handler_name(own.as_deref(), node, implementation)?;
                let Some(tool) = (self.known.compiled)(&name) else {
                    let message = format!("`implementation.handler`: there is no compiled tool `{name}`");
                    return self.fault(line, message);
                };
                let policy = *tool.policy();
                Some((alias_of(tool), policy))
            }
            "internal" => {
                let name = self.handler_name(own.as_deref(), node, implementation)?;
                let Some(handler) = self.known.internal.get(&name) else {
                    let names: Vec<&str> = self.known.internal.keys().map(String::as_str).collect();
                    let near = nearest(&name, names.iter().copied());
                    let hint = near.first().map(|near| format!("; is `{near}` meant?")).unwrap_or_default();
                    let message =
                        format!("`implementation.handler`: the program has no handler `{name}`{hint}");
                    return self.fault(line, message);
                };
                Some((Arc::clone(handler), ToolPolicy::new()))
            }
            "http" => self.fault(line, HTTP),
            other => self.fault(
                line,
                format!("`implementation.type` is mock, builtin or internal, and not \"{other}\""),
            ),
        }
    }

    /// The handler's name, which is the same in both places.
    fn handler_name(&mut self, own: Option<&str>, node: &Node, implementation: &Node) -> Option<String> {
        let name = self.required_of_implementation(implementation, "handler")?;
        if let Some(own) = own.filter(|own| *own != name) {
            let line = node.get("handler").map_or(node.line, |node| node.line);
            self.fault::<()>(
                line,
                format!("`handler` is \"{own}\" and `implementation.handler` is \"{name}\""),
            );
        }
        Some(name)
    }

    fn policy(&mut self, node: &Node, base: ToolPolicy) -> ToolPolicy {
        let seconds = |seconds: u64| Duration::from_secs(seconds);
        ToolPolicy {
            permission: self.word(node, "permission").unwrap_or(base.permission),
            cost: self.word(node, "cost").unwrap_or(base.cost),
            effect: self.word(node, "effect").unwrap_or(base.effect),
            reads: self
                .value(node, "reads", "an array of \"private\" and \"untrusted\", or an empty one")
                .or(base.reads),
            sends: self.word(node, "sends").or(base.sends),
            timeout: self
                .value::<std::num::NonZeroU64>(node, "timeout_seconds", "a whole number of at least 1")
                .map_or(base.timeout, |given| seconds(given.get())),
            cooldown: self.value(node, "cooldown_seconds", "a whole number").map_or(base.cooldown, seconds),
            daily_limit: self.value(node, "daily_limit", "a whole number").unwrap_or(base.daily_limit),
            max_concurrent: self
                .value(node, "max_concurrent", "a whole number")
                .unwrap_or(base.max_concurrent),
            requires_gate: self.value(node, "requires_gate", "true or false").unwrap_or(base.requires_gate),
            idempotent: self.value(node, "idempotent", "true or false").unwrap_or(base.idempotent),
            resumable: base.resumable,
            text_tag: base.text_tag,
            deferred: self.value(node, "deferred", "true or false").unwrap_or(base.deferred),
            ends_turn: self.value(node, "ends_turn", "true or false").unwrap_or(base.ends_turn),
        }
    }

    fn value<T: serde::de::DeserializeOwned>(&mut self, node: &Node, key: &str, what: &str) -> Option<T> {
        let value = node.get(key)?;
        let read = serde_json::from_value(value.to_json()).ok();
        read.or_else(|| self.fault(value.line, format!("`{key}` has to be {what}")))
    }

    fn word<T: FromStr<Err = String>>(&mut self, node: &Node, key: &str) -> Option<T> {
        let word = self.text(node, key)?;
        let line = node.get(key).map_or(node.line, |node| node.line);
        word.parse().map_or_else(|message: String| self.fault(line, format!("`{key}`: {message}")), Some)
    }
}

/// Answers every call with the same value.
struct Mock(Value);

impl Handler for Mock {
    fn call<'a>(&'a self, _: &'a ToolContext, _: Map<String, Value>) -> ToolFuture<'a> {
        Box::pin(std::future::ready(Ok(ToolResult::new(self.0.clone()))))
    }
}
