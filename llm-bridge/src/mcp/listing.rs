//! `tools/list`: the tools that the caller may use, by name, in pages.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{CacheScope, ListToolsResult, Tool},
};
use serde_json::Value;
use toolrack_apis::{Definer, Definitions, Provider};

use super::{McpSettings, Visitor, names};
use crate::definition::subject;

/// Tools per page. Many clients do not request a second page, and few registries have that many.
const PAGE: usize = 500;
/// How long a client may cache the list, in milliseconds. A client that listens is notified of changes.
const BELIEVED_MS: u64 = 60_000;
/// The prefix of a cursor; the rest is the listed name of the last tool before the page.
const AFTER: &str = "after:";

/// The page at a cursor.
pub(super) fn page(
    visitor: &Visitor,
    settings: &McpSettings,
    cursor: Option<String>,
) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => "",
        Some(cursor) => cursor
            .strip_prefix(AFTER)
            .ok_or_else(|| ErrorData::invalid_params("the cursor is not valid", None))?,
    };
    let selection = visitor.registry.select(&visitor.context);
    let definer = Definer::new(Provider::Mcp).with_names(names::names(&visitor.registry, settings));
    let Definitions { list, left_out, .. } =
        definer.definitions(selection.tools().iter().map(|tool| subject(tool)));
    for left_out in &left_out {
        tracing::warn!("{left_out}");
    }
    let Value::Array(mut rest) = list else { return Ok(ListToolsResult::default()) };
    rest.retain(|definition| name(definition) > after);
    rest.sort_by(|a, b| name(a).cmp(name(b)));
    let more = rest.len() > PAGE;
    rest.truncate(PAGE);
    let next_cursor = rest.last().filter(|_| more).map(|last| format!("{AFTER}{}", name(last)));
    let tools: Vec<Tool> = serde_json::from_value(Value::Array(rest))
        .map_err(|fault| ErrorData::internal_error(format!("a definition is none: {fault}"), None))?;
    let mut result = ListToolsResult::with_all_items(tools)
        .with_ttl_ms(BELIEVED_MS)
        // Lists differ between callers.
        .with_cache_scope(CacheScope::Private);
    result.next_cursor = next_cursor;
    Ok(result)
}

fn name(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A tool with its input schema, by its MCP name.
pub(super) fn tool(visitor: &Visitor, settings: &McpSettings, name: &str) -> Option<Tool> {
    let own_name = names::own_name(&visitor.registry, settings, name)?;
    let selection = visitor.registry.select(&visitor.context);
    let schema = selection.get(&own_name)?.spec().input_schema.as_object()?.clone();
    Some(Tool::new(own_name, "", Arc::new(schema)))
}
