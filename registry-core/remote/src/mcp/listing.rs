//! All that a server lists, page by page, as far as it is taken.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use rmcp::{
    RoleClient,
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult},
    service::Peer,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{definition, text::cause_of};

/// How many tools of a server are read.
const MAX_LISTED: usize = 10_000;
/// How many pages are asked for.
const MAX_PAGES: usize = 1000;
/// How large all definitions together may be, in bytes of JSON.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A tool as the server defines it. Of what it may have beside this nothing is read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) input_schema: Value,
    pub(super) output_schema: Option<Value>,
    /// How it is run.
    #[serde(default)]
    pub(super) execution: Value,
    #[serde(default)]
    pub(super) annotations: Option<Annotations>,
}

/// What a tool says of its effect. All of it may be a lie.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Annotations {
    pub(super) title: Option<String>,
    pub(super) read_only_hint: Option<bool>,
    pub(super) destructive_hint: Option<bool>,
    pub(super) idempotent_hint: Option<bool>,
    pub(super) open_world_hint: Option<bool>,
}

/// What a server lists.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The tools in the server's order, or what is wrong with each, by the name it gives itself.
    pub(super) tools: Vec<(String, Result<Listed, String>)>,
    /// Why there may be more that were not read.
    pub(super) cut: Option<String>,
    /// What the definitions so far take, as JSON.
    pub(super) bytes: usize,
    pub(super) hash: DefaultHasher,
}

impl Listing {
    /// The same for lists of the same definitions.
    pub(super) fn digest(&self) -> (u64, Option<String>) {
        (self.hash.finish(), self.cut.clone())
    }

    /// Reads the definitions of a page; false where there are more than are taken.
    fn take(&mut self, definitions: Vec<Box<RawValue>>) -> bool {
        for definition in definitions {
            self.bytes = self.bytes.saturating_add(definition.get().len());
            if self.tools.len() == MAX_LISTED || self.bytes > MAX_BYTES {
                self.cut = Some(format!(
                    "it lists more than {MAX_LISTED} tools or {MAX_BYTES} bytes of definitions; the rest is not read"
                ));
                return false;
            }
            definition.get().hash(&mut self.hash);
            self.tools.push(definition::read(&definition, self.tools.len() + 1));
        }
        true
    }
}

/// Asks for all pages.
///
/// # Errors
/// Why no list was had.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Listing, String> {
    let (mut listing, mut seen) = (Listing::default(), BTreeSet::new());
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let (tools, next) = page(peer, cursor).await?;
        if !listing.take(tools) {
            return Ok(listing);
        }
        match next {
            None => return Ok(listing),
            Some(next) if !seen.insert(next.clone()) => {
                listing.cut = Some("it gives one cursor twice; what comes after is not read".to_owned());
                return Ok(listing);
            }
            next => cursor = next,
        }
    }
    listing.cut = Some(format!("it lists more than {MAX_PAGES} pages; the rest is not read"));
    Ok(listing)
}

/// One page. The client library reads a list whole or not at all, so one that it cannot is read again here, tool by tool.
async fn page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<(Vec<Box<RawValue>>, Option<String>), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        tools: Vec<Box<RawValue>>,
        next_cursor: Option<String>,
    }
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ListToolsRequest { method: Default::default(), params, extensions: Default::default() };
    let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await.map_err(cause_of)?;
    let answer = match answer {
        ServerResult::ListToolsResult(list) => serde_json::to_value(list),
        ServerResult::CustomResult(other) => Ok(other.0),
        other => serde_json::to_value(other),
    };
    let page = answer.and_then(serde_json::from_value::<Page>);
    let page = page.map_err(|error| format!("its list of tools cannot be read: {error}"))?;
    Ok((page.tools, page.next_cursor))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    #[test]
    fn b3_a_list_has_so_many_bytes_and_tools_and_no_more() {
        let tool = |bytes: usize| {
            let definition = |padding: usize| {
                to_raw_value(&json!({"name": "a", "inputSchema": {}, "description": "x".repeat(padding)}))
            };
            let beside = definition(0).unwrap().get().len();
            definition(bytes - beside).unwrap()
        };
        let mut listing = Listing::default();
        for _ in 0..MAX_BYTES / (1 << 20) {
            assert!(listing.take(vec![tool(1 << 20)]));
        }
        assert_eq!((listing.bytes, listing.tools.len(), &listing.cut), (MAX_BYTES, 32, &None));
        assert!(!listing.take(vec![tool(100)]));
        assert_eq!(listing.tools.len(), 32);
        assert!(listing.cut.unwrap().contains("33554432 bytes"));
        let mut listing = Listing::default();
        assert!(!listing.take((0..=MAX_LISTED).map(|_| tool(100)).collect()));
        assert_eq!(listing.tools.len(), MAX_LISTED);
    }

    #[test]
    fn b3_a_definition_that_is_no_use_costs_that_tool_alone() {
        let read = |definition: &Value| definition::read::<Listed>(&to_raw_value(definition).unwrap(), 7);
        assert!(read(&json!({"inputSchema": {}})).1.unwrap_err().contains("name"));
        assert_eq!(read(&json!(3)).0, "number 7");
        let full = json!({"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": true}, "icons": 3});
        let (name, tool) = read(&full);
        assert_eq!((name.as_str(), tool.unwrap().annotations.unwrap().read_only_hint), ("a", Some(true)));
    }
}
