//! `tools/list`: the tools that the caller may use, by name, in pages.

use registry_core::Selection;
use rmcp::{
    ErrorData,
    model::{CacheScope, ListToolsResult, Tool},
};

use super::Visitor;
use crate::provider::{Definer, Provider};

/// Tools in one page. Clients that do not ask for a second page are common, and few registries have as many.
const PAGE: usize = 500;
/// How long a client may go by what it was told, in milliseconds. A client that listens is told of changes.
const BELIEVED_MS: u64 = 60_000;
/// What a cursor begins with; the rest is the name of the last tool before the page.
const AFTER: &str = "after:";

/// The page behind a cursor.
pub(super) fn page(visitor: &Visitor, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => "",
        Some(cursor) => cursor.strip_prefix(AFTER).ok_or_else(|| {
            ErrorData::invalid_params("the cursor is none that this server has given", None)
        })?,
    };
    let selection = visitor.registry.select(&visitor.context);
    let from = selection.tools().partition_point(|tool| tool.name() <= after);
    let rest = selection.tools().get(from..).unwrap_or_default();
    let tools = rest.get(..PAGE).unwrap_or(rest);
    let definitions = Definer::new(Provider::Mcp).definitions(tools.iter().map(AsRef::as_ref));
    for left_out in &definitions.left_out {
        tracing::warn!("{left_out}");
    }
    let listed: Vec<Tool> = serde_json::from_value(definitions.list)
        .map_err(|fault| ErrorData::internal_error(format!("a definition is none: {fault}"), None))?;
    let mut result = ListToolsResult::with_all_items(listed)
        .with_ttl_ms(BELIEVED_MS)
        // What one caller may use is nothing to another.
        .with_cache_scope(CacheScope::Private);
    if let Some(last) = tools.last().filter(|_| rest.len() > tools.len()) {
        result.next_cursor = Some(format!("{AFTER}{}", last.name()));
    }
    Ok(result)
}

/// The tool's own name, by the one it has here. Nearly always they are the same.
pub(super) fn own_name(selection: &Selection, name: String) -> String {
    if selection.get(&name).is_some() {
        return name;
    }
    let definitions = Definer::new(Provider::Mcp).definitions(selection.tools().iter().map(AsRef::as_ref));
    definitions.names.original(&name).map_or(name, str::to_owned)
}
