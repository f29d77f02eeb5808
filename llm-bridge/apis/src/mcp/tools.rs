//! Tool definitions of the Model Context Protocol, as in the `tools` of a `tools/list` result:
//! <https://modelcontextprotocol.io/specification/draft/server/tools>.
//!
//! Clients pass names on to models as they are, so names are legal for every provider, although the protocol has dots. Schemas are JSON
//! Schema 2020-12 without restrictions, and those of older drafts are translated; the root of the input schema has type `object`. An
//! output schema with another root is left out, as revisions before 2026-07-28 accept no other. Properties whose schemas are `true` or
//! `false` become equivalent objects, which more clients can read.

use serde_json::{Map, Value, json};

use crate::{
    definition::Hints,
    names::NameRule,
    rules::{Form, Parts, Rules},
};

pub(crate) const RULES: Rules = Rules {
    name: NameRule::COMMON,
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
    tool.extend(parts.subject.title.map(|title| ("title".to_owned(), title.into())));
    tool.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    tool.insert(parts.field.to_owned(), parts.schema.clone().into());
    let output = parts.subject.output_schema;
    let output = output.filter(|schema| schema.get("type").and_then(Value::as_str) == Some("object"));
    tool.extend(output.map(|schema| ("outputSchema".to_owned(), schema.clone())));
    tool.extend(parts.subject.hints.map(|hints| ("annotations".to_owned(), annotations(hints))));
    tool.into()
}

/// Without `destructiveHint` a tool that writes counts as destructive. `idempotentHint` has no meaning for a tool that only
/// reads.
fn annotations(hints: Hints) -> Value {
    let open_world = hints.open_world;
    if hints.read_only {
        return json!({ "readOnlyHint": true, "openWorldHint": open_world });
    }
    json!({
        "readOnlyHint": false, "destructiveHint": hints.destructive, "idempotentHint": hints.idempotent,
        "openWorldHint": open_world,
    })
}
