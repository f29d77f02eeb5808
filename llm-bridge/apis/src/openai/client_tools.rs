//! The tools of clients and their choice among them. Other APIs have the same shapes.

use std::{borrow::Cow, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::{
    BadRequest, ClientTool, Passing, Provider, ToolChoice, ToolInput,
    front::read_name,
    json::{Field, Leftover, Object},
};

/// Reads `{"type": "function", "function": {…}}` or a custom tool. Some clients, such as Cursor, send the flat form of Responses here.
pub(crate) fn read_tool(mut tool: Object<'_>, api: Provider) -> Result<ClientTool, BadRequest> {
    let kind = tool.string("type")?;
    if tool.get("name").is_some() && tool.get("function").is_none() && tool.get("custom").is_none() {
        return match kind.as_deref() {
            Some("custom") => read_custom(tool, api),
            Some("function") | None => read_function(tool, api),
            Some(other) => Err(not_offered(&tool, other)),
        };
    }
    let mut passing = Passing::of(api);
    let (name, description, input) = match kind.as_deref() {
        Some("function") | None => {
            let mut function = tool.object("function")?.ok_or_else(|| tool.bad("function", "is missing"))?;
            let read =
                (read_name(&mut function)?, function.string("description")?, read_json(&mut function)?);
            function.leave("function", &mut passing);
            read
        }
        Some("custom") => {
            let mut custom = tool.object("custom")?.ok_or_else(|| tool.bad("custom", "is missing"))?;
            let input = ToolInput::Text { format: custom.value("format")?.map(Arc::new) };
            let read = (read_name(&mut custom)?, custom.string("description")?, input);
            custom.leave("custom", &mut passing);
            read
        }
        Some(other) => return Err(not_offered(&tool, other)),
    };
    Ok(ClientTool { name, description, input, passing: tool.rest_with(passing) })
}

fn not_offered(tool: &Object<'_>, kind: &str) -> BadRequest {
    let message = format_args!("`{kind}` is not offered here; send tools of type `function` or `custom`");
    tool.bad("type", message)
}

/// Reads a tool of free text by itself.
pub(crate) fn read_custom(mut tool: Object<'_>, api: Provider) -> Result<ClientTool, BadRequest> {
    Ok(ClientTool {
        name: read_name(&mut tool)?,
        description: tool.string("description")?,
        input: ToolInput::Text { format: tool.value("format")?.map(Arc::new) },
        passing: tool.rest(api),
    })
}

/// Reads a function by itself, as in the deprecated field `functions`.
pub(crate) fn read_function(mut function: Object<'_>, api: Provider) -> Result<ClientTool, BadRequest> {
    Ok(ClientTool {
        name: read_name(&mut function)?,
        description: function.string("description")?,
        input: read_json(&mut function)?,
        passing: function.rest(api),
    })
}

pub(crate) fn read_json(function: &mut Object<'_>) -> Result<ToolInput, BadRequest> {
    let schema = function.value("parameters")?;
    if schema.as_ref().is_some_and(|schema| !schema.is_object() && !schema.is_boolean()) {
        return Err(function.bad("parameters", "has to be a JSON Schema: an object"));
    }
    Ok(ToolInput::Json { schema: schema.map(Arc::new), strict: function.bool("strict")? })
}

const CHOICES: &str = "has to be \"auto\", \"none\", \"required\", \
                       {\"type\": \"function\", \"function\": {\"name\": …}} or {\"type\": \"allowed_tools\", …}";

pub(crate) fn read_tool_choice(field: Option<Field<'_>>) -> Result<ToolChoice, BadRequest> {
    let Some(field) = field else { return Ok(ToolChoice::Auto) };
    let bad = field.bad(CHOICES);
    if field.is_string() {
        return match field.string()?.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" => Ok(ToolChoice::Required),
            _ => Err(bad),
        };
    }
    if !field.is_object() {
        return Err(bad);
    }
    let mut choice = field.object()?;
    if choice.string("type")?.as_deref() != Some("allowed_tools") {
        return read_named(choice)?.map(ToolChoice::Named).ok_or(bad);
    }
    let inner = choice.object("allowed_tools")?;
    let mut allowed = inner.unwrap_or(choice);
    let required = match allowed.string("mode")?.as_deref() {
        None | Some("auto") => false,
        Some("required") => true,
        Some(_) => return Err(allowed.bad("mode", "has to be \"auto\" or \"required\"")),
    };
    let tools = allowed.take("tools").ok_or_else(|| bad.clone())?.items()?;
    let names = tools.into_iter().map(|tool| read_named(tool.object()?)?.ok_or_else(|| bad.clone()));
    Ok(ToolChoice::Allowed { names: names.collect::<Result<_, _>>()?, required })
}

/// The name in `{"function": {"name"}}`, `{"custom": {"name"}}` or `{"name"}`.
fn read_named(mut object: Object<'_>) -> Result<Option<String>, BadRequest> {
    for inner in ["function", "custom"] {
        if let Some(mut inner) = object.object(inner)? {
            return inner.string("name");
        }
    }
    object.string("name")
}

/// Reads the deprecated field `function_call`.
pub(crate) fn read_function_choice(field: Option<Field<'_>>) -> Result<ToolChoice, BadRequest> {
    let Some(field) = field else { return Ok(ToolChoice::Auto) };
    let bad = field.bad("has to be \"auto\", \"none\" or {\"name\": …}");
    if field.is_string() {
        return match field.string()?.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            _ => Err(bad),
        };
    }
    if !field.is_object() {
        return Err(bad);
    }
    field.object()?.string("name")?.map(ToolChoice::Named).ok_or(bad)
}

/// A tool as it goes to model servers, which have only functions: other types are refused or passed over by all but OpenAI.
pub(crate) struct ToolJson<'a> {
    tool: &'a ClientTool,
    api: Provider,
}

impl<'a> ToolJson<'a> {
    pub(crate) fn new(tool: &'a ClientTool, api: Provider) -> Self {
        Self { tool, api }
    }
}

impl Serialize for ToolJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Inner<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters: Option<Cow<'a, Value>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            strict: Option<bool>,
            #[serde(flatten)]
            passing: Leftover<'a>,
        }
        let ClientTool { name, description, input, passing } = self.tool;
        let strict = match input {
            ToolInput::Json { strict, .. } => *strict,
            ToolInput::Text { .. } => None,
        };
        let description = description.as_deref();
        let leftover = Leftover(passing.get(self.api, "function"));
        let inner = Inner { name, description, parameters: input.schema(), strict, passing: leftover };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &inner)?;
        let is_other = |name: &str| !matches!(name, "function" | "custom");
        for (name, value) in passing.to(self.api).iter().filter(|(name, _)| is_other(name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
