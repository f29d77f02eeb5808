//! The tool with which a model reads on in a result that was shortened.

use std::sync::Arc;

use registry_core::{Handler, Tool, ToolContext, ToolError, ToolPolicy, ToolResult, ToolSpec, flow::Reads};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use super::{
    kept::{KeptResults, is_beginning},
    offer::Offer,
    shorten::{self, middle, with_note},
    transcript::Transcripts,
};

/// The tool's name in the registry's path. No registry has it: it is offered in conversations with shortened results alone.
pub(super) const READ_RESULT: &str = "read_result";

/// How many characters the model gets where it does not say.
const LENGTH: usize = 4000;
/// How many characters the note about what is missing has at most, and that around a part.
const NOTE: usize = 160;
/// A longer result is shortened beside the runtime, in bytes.
const SMALL: usize = 256 * 1024;

/// The tool; `limit` is how many characters a result has at most.
pub(super) fn tool(kept: KeptResults, transcripts: Transcripts, limit: usize) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id that stands where characters were left out."},
            "from": {"type": "integer", "minimum": 0, "default": 0, "description": "The character to begin at."},
            "length": {"type": "integer", "minimum": 1, "default": LENGTH, "description": "How many characters to read."},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        description: Some("Reads on in a result of a tool that was shortened.".to_owned()),
        ..ToolSpec::new(READ_RESULT, schema)
    };
    // The result may have come in an earlier turn.
    let policy = ToolPolicy { idempotent: true, reads: Some(Reads::BOTH), ..ToolPolicy::new() };
    Tool::built_in(spec, policy, Arc::new(ReadResult { kept, transcripts, limit }), jiff::Timestamp::now())
}

/// Whose results a call may read.
pub(super) fn owner(tenant: &str, user: &str) -> String {
    format!("{tenant}\0{user}")
}

/// The code of [`READ_RESULT`].
struct ReadResult {
    kept: KeptResults,
    transcripts: Transcripts,
    limit: usize,
}

impl ReadResult {
    /// The whole text of a result: from this process, or else, after a restart or on another server, from the store.
    async fn find(&self, context: &ToolContext, id: &str) -> Option<Arc<str>> {
        let (tenant, user) = (context.tenant(), context.caller().user.as_str());
        let owner = owner(tenant, user);
        if let Some(text) = self.kept.get(&owner, id) {
            return Some(text);
        }
        let text = self.transcripts.result((tenant, user), id).await?;
        self.kept.keep(&owner, &text);
        Some(text.into())
    }

    async fn read(&self, context: &ToolContext, arguments: &Map<String, Value>) -> ToolResult {
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        let Some(text) = self.find(context, id.trim()).await else {
            // For the model alone, so that it is no message to the user.
            let gone = ToolResult::new(format!(
                "There is no result `{id}`, or it is not kept any more. Call the tool that gave it again, if you need it."
            ));
            return ToolResult { success: false, ..gone };
        };
        let number = |name: &str, usual: usize| {
            let number = arguments.get(name).and_then(Value::as_u64);
            number.map_or(usual, |number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let (from, most) = (number("from", 0), self.limit.saturating_sub(NOTE).max(1));
        ToolResult::new(part(&text, from, number("length", LENGTH).clamp(1, most)))
    }
}

/// So many characters of a text, with where they stand in it.
fn part(text: &str, from: usize, length: usize) -> String {
    let mut places = text.char_indices().map(|(at, _)| at);
    let Some(begin) = places.nth(from) else {
        let count = text.chars().count();
        return match is_beginning(text) {
            true => format!("[Only the first {count} characters of the result are kept.]"),
            false => format!("[The result ends at character {count}.]"),
        };
    };
    let end = match length.checked_sub(1).and_then(|more| places.nth(more)) {
        Some(end) => end,
        None => text.len(),
    };
    let piece = text.get(begin..end).unwrap_or_default();
    let to = from + piece.chars().count();
    let rest = text.get(end..).unwrap_or_default().chars().count();
    let after = match rest {
        // The text says it itself.
        0 if is_beginning(text) => String::new(),
        0 => "\n[The result ends here.]".to_owned(),
        rest => format!("\n[{rest} more characters follow, from {to}]"),
    };
    format!("[Characters {from} to {to}]\n{piece}{after}")
}

impl Handler for ReadResult {
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> registry_core::BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move { Ok(self.read(context, &arguments).await) })
    }
}

impl Offer {
    /// What the model is given of a result: all, or so many characters, and how to read on.
    pub(super) fn shortened(&self, text: String, limit: usize) -> String {
        self.shortened_as(text, limit).0
    }

    /// The same, and the id of what was left out.
    fn shortened_as(&self, text: String, limit: usize) -> (String, Option<String>) {
        let Some(name) = self.reading() else { return (shorten::shorten(text, limit), None) };
        let Some(middle) = middle(&text, limit, NOTE) else { return (text, None) };
        let id = self.kept.keep(&self.owner, &text);
        self.found.add(&[READ_RESULT.to_owned()]);
        let from = text.get(..middle.start).unwrap_or_default().chars().count();
        let call = json!({"id": id, "from": from});
        let shortened = with_note(&text, &middle, |left_out| {
            format!("[… {left_out} characters were left out here; to read on, call {name} with {call}]")
        });
        (shortened, Some(id))
    }

    /// What the model is given of a result of this turn, of any length.
    pub(super) async fn shorten_result(self: &Arc<Self>, text: String, limit: usize) -> String {
        let (text, id) = if text.len() <= SMALL {
            self.shortened_as(text, limit)
        } else {
            let offer = Arc::clone(self);
            spawn_blocking(move || offer.shortened_as(text, limit)).await.unwrap_or_default()
        };
        self.left_out.lock().extend(id);
        text
    }

    /// The whole texts of the results of this turn that were shortened, with their ids, once.
    pub(super) fn take_left_out(&self) -> Vec<(String, Arc<str>)> {
        let ids = std::mem::take(&mut *self.left_out.lock());
        let text_of = |id: String| self.kept.get(&self.owner, &id).map(|text| (id, text));
        ids.into_iter().filter_map(text_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_part_says_where_it_stands_and_what_follows() {
        assert_eq!(part("äöüß", 1, 2), "[Characters 1 to 3]\nöü\n[1 more characters follow, from 3]");
        assert_eq!(part("äöüß", 1, 3), "[Characters 1 to 4]\nöüß\n[The result ends here.]");
        assert_eq!(part("äöüß", 0, usize::MAX), "[Characters 0 to 4]\näöüß\n[The result ends here.]");
        assert_eq!(part("äöüß", 4, 1), "[The result ends at character 4.]");
    }
}
