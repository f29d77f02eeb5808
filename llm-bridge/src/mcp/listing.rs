//! `tools/list`: the tools that the caller may use, by name, in pages.

use std::sync::Arc;

use registry_core::Selection;
use rmcp::{
    ErrorData,
    model::{CacheScope, ListToolsResult, Tool},
};
use serde_json::Value;
use toolrack_apis::{Definer, Definitions, Provider};

use super::Visitor;
use crate::definition::subject;

/// Tools per page. Many clients do not request a second page, and few registries have that many.
const PAGE: usize = 500;
/// How long a client may cache the list, in milliseconds. A client that listens is notified of changes.
const BELIEVED_MS: u64 = 60_000;
/// The prefix of a cursor; the rest is the name of the last tool before the page.
const AFTER: &str = "after:";

/// The page at a cursor.
pub(super) fn page(visitor: &Visitor, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => "",
        Some(cursor) => cursor
            .strip_prefix(AFTER)
            .ok_or_else(|| ErrorData::invalid_params("the cursor is not valid", None))?,
    };
    // All tools, because a tool's name may depend on the others'.
    let Definitions { list, names, left_out, .. } = definitions(&visitor.registry.select(&visitor.context));
    for left_out in &left_out {
        tracing::warn!("{left_out}");
    }
    let own_name = |definition: &Value| {
        let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
        names.original(name).unwrap_or(name).to_owned()
    };
    let Value::Array(mut rest) = list else { return Ok(ListToolsResult::default()) };
    rest.retain(|definition| own_name(definition).as_str() > after);
    let more = rest.len() > PAGE;
    rest.truncate(PAGE);
    let next_cursor = rest.last().filter(|_| more).map(|last| format!("{AFTER}{}", own_name(last)));
    let tools: Vec<Tool> = serde_json::from_value(Value::Array(rest))
        .map_err(|fault| ErrorData::internal_error(format!("a definition is none: {fault}"), None))?;
    let mut result = ListToolsResult::with_all_items(tools)
        .with_ttl_ms(BELIEVED_MS)
        // Lists differ between callers.
        .with_cache_scope(CacheScope::Private);
    result.next_cursor = next_cursor;
    Ok(result)
}

/// The tool's name in the registry, nearly always the same.
pub(super) fn own_name(selection: &Selection, name: String) -> String {
    if selection.get(&name).is_some() {
        return name;
    }
    definitions(selection).names.original(&name).map_or(name, str::to_owned)
}

/// A tool with its input schema, by its MCP name.
pub(super) fn tool(visitor: &Visitor, name: &str) -> Option<Tool> {
    let selection = visitor.registry.select(&visitor.context);
    let own_name = own_name(&selection, name.to_owned());
    let schema = selection.get(&own_name)?.spec().input_schema.as_object()?.clone();
    Some(Tool::new(own_name, "", Arc::new(schema)))
}

fn definitions(selection: &Selection) -> Definitions {
    Definer::new(Provider::Mcp).definitions(selection.tools().iter().map(|tool| subject(tool)))
}
