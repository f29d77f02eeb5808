//! Tools in namespaces, as coding agents send those of their MCP servers. Model servers know no namespaces: a model sees
//! `NAMESPACE__NAME`, and the client gets the two apart again.

use std::collections::HashMap;

use serde_json::Value;

use super::{SERVER_LABEL, front::read_tool};
use crate::{
    BadRequest, ClientTool,
    front::{ToolList, read_name},
    json::{Field, Object},
};

const SEPARATOR: &str = "__";

/// Namespace and name of the tools in namespaces, by the name that the model sees.
#[derive(Debug, Default)]
pub(super) struct Namespaces(HashMap<String, (String, String)>);

impl Namespaces {
    /// Puts namespace and name into the item of a call, as the client knows them.
    pub(super) fn restore(&self, mut item: Value) -> Value {
        if let Value::Object(fields) = &mut item
            && let Some((namespace, name)) =
                fields.get("name").and_then(Value::as_str).and_then(|name| self.0.get(name))
        {
            fields.insert("name".to_owned(), name.as_str().into());
            fields.insert("namespace".to_owned(), namespace.as_str().into());
        }
        item
    }
}

/// The tools of a request.
pub(super) struct ReadTools {
    pub(super) tools: Vec<ClientTool>,
    pub(super) namespaces: Namespaces,
    /// Whether the tools of this server are asked for as those of an MCP server.
    pub(super) has_server: bool,
}

/// Reads the tools of a request. The description of a namespace is not read: each of its tools has one.
pub(super) fn read_tools(items: Vec<Field<'_>>) -> Result<ReadTools, BadRequest> {
    let (mut tools, mut namespaces, mut has_server) = (ToolList::of(&items)?, Namespaces::default(), false);
    for item in items {
        let place = item.bad("");
        let mut tool = item.object()?;
        let kind = tool.string("type")?;
        if kind.as_deref() == Some("mcp") {
            check_server(tool)?;
            has_server = true;
            continue;
        }
        if kind.as_deref() != Some("namespace") {
            let tool = read_tool(kind.as_deref(), tool)?;
            match namespaces.0.contains_key(&tool.name) {
                true => tools.push(tool, place)?,
                false => tools.push_once(tool, place)?,
            }
            continue;
        }
        let namespace = read_name(&mut tool)?;
        for item in tool.items("tools")? {
            let place = item.bad("");
            let mut tool = item.object()?;
            let kind = tool.string("type")?;
            let mut tool = read_tool(kind.as_deref(), tool)?;
            let joined = join(&namespace, &tool.name);
            let name = std::mem::replace(&mut tool.name, joined.clone());
            namespaces.0.insert(joined, (namespace.clone(), name));
            tools.push(tool, place)?;
        }
    }
    Ok(ReadTools { tools: tools.into_tools(), namespaces, has_server })
}

/// Checks that a tool of type `mcp` means this server: it connects to no other because a client says so.
fn check_server(mut tool: Object<'_>) -> Result<(), BadRequest> {
    if tool.string("server_label")?.as_deref() != Some(SERVER_LABEL) {
        let message = "`mcp` is offered for the tools of this server alone, as {\"type\": \"mcp\", \"server_label\": \"toolrack\"}; \
                       connect other MCP servers in its settings";
        return Err(tool.bad("type", message));
    }
    let approvals = tool.get("require_approval").filter(|field| field.source().get() != "\"never\"");
    let refused = [
        (approvals, "has to be \"never\" here: this server asks for approvals itself"),
        (tool.get("allowed_tools"), "is not offered here; send `toolrack.allowed_tools`"),
        (tool.get("server_url"), "is not offered here; leave it out"),
        (tool.get("connector_id"), "is not offered here; leave it out"),
    ];
    match refused.into_iter().find_map(|(field, message)| Some(field?.bad(message))) {
        Some(bad) => Err(bad),
        None => Ok(()),
    }
}

/// Reads the name in the item of a call, as the model sees it.
pub(super) fn read_call_name(item: &mut Object<'_>) -> Result<String, BadRequest> {
    let name = read_name(item)?;
    let namespace = item.string("namespace")?.filter(|namespace| !namespace.is_empty());
    Ok(namespace.map_or(name.clone(), |namespace| join(&namespace, &name)))
}

/// A namespace may end with the separator.
fn join(namespace: &str, name: &str) -> String {
    let separator = if namespace.ends_with(SEPARATOR) { "" } else { SEPARATOR };
    format!("{namespace}{separator}{name}")
}
