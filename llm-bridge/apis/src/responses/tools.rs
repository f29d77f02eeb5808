//! Tool definitions of the OpenAI Responses API: <https://platform.openai.com/docs/api-reference/responses>.
//!
//! A definition is flat and always has `strict`: by default the API tries strict mode, which changes what the model may leave out. Names are
//! `[a-zA-Z0-9_-]{1,128}`. The rules for schemas are those of [chat completions](crate::openai).

use serde_json::{Map, Value, json};

use crate::{
    names::NameRule,
    openai,
    rules::{Parts, Rules},
};

pub(crate) const RULES: Rules = Rules {
    name: NameRule { extra: "-", begins_with_letter: false, max_length: 128 },
    max_tools: None,
    write,
    ..openai::tools::RULES
};

fn write(parts: &Parts<'_>) -> Value {
    let mut tool = Map::new();
    tool.insert("type".to_owned(), "function".into());
    tool.insert("name".to_owned(), parts.name.into());
    tool.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    tool.insert(parts.field.to_owned(), parts.schema.clone().into());
    tool.insert("strict".to_owned(), json!(parts.strict));
    tool.into()
}
