//! Tool definitions of the Model Context Protocol, as in the `tools` of a `tools/list` result:
//! <https://modelcontextprotocol.io/specification/draft/server/tools>.
//!
//! Names are `[A-Za-z0-9_.-]{1,128}`, so a tool keeps its dot. Schemas are JSON Schema 2020-12 whole, and those of older drafts are said
//! in its words; the root of the input's has type `object`. So has that of the output's here: the revisions before 2026-07-28 take no other, and say nothing where it is left out.
//! Properties whose schemas are `true` or `false` become objects of the same meaning, which more readers take.

use registry_core::{Effect, ToolPolicy};
use serde_json::{Map, Value, json};

use super::{
    names::NameRule,
    rules::{Form, Parts, Rules},
};

pub(super) const RULES: Rules = Rules {
    name: NameRule { extra: ".-", begins_with_letter: false, max_length: 128 },
    max_description: None,
    needs_description: false,
    max_tools: None,
    forms: &[Form::WHOLE, Form::JSON_SCHEMA],
    strict: None,
    write,
    list: Value::Array,
};

fn write(parts: &Parts<'_>) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), parts.name.into());
    tool.extend(parts.spec.title.as_deref().map(|title| ("title".to_owned(), title.into())));
    tool.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    tool.insert(parts.field.to_owned(), parts.schema.clone().into());
    let output = &parts.spec.output_schema;
    if output.get("type").and_then(Value::as_str) == Some("object") {
        tool.insert("outputSchema".to_owned(), output.clone());
    }
    tool.extend(parts.policy.map(|policy| ("annotations".to_owned(), annotations(policy))));
    tool.into()
}

/// Without `destructiveHint` a tool that writes counts as destructive. `idempotentHint` says that a second call with the same arguments
/// changes nothing more; of a tool that only reads that means nothing, so it is not said.
fn annotations(policy: &ToolPolicy) -> Value {
    let is_destructive = match policy.effect {
        Effect::Read => return json!({ "readOnlyHint": true }),
        Effect::Write => false,
        Effect::Destructive => true,
    };
    json!({ "readOnlyHint": false, "destructiveHint": is_destructive, "idempotentHint": policy.idempotent })
}
