//! Writes calls, results and instructions in a dialect, for models without native tools and for their history.

use serde_json::{Map, Value};

use super::table::{Dialect, Family};

impl Dialect {
    /// A call as a model of this dialect writes it.
    pub fn call(&self, name: &str, arguments: &Map<String, Value>) -> String {
        let open = self.marks.iter().find(|mark| !mark.inner).map_or("", |mark| mark.text);
        let close = self.close.first().copied().unwrap_or_default();
        let body = match self.family {
            Family::Json(style) => {
                let name_key = style.names.first().copied().unwrap_or("name");
                let arguments_key = style.arguments.first().copied().unwrap_or("arguments");
                let (name, arguments) =
                    (Value::from(name), serde_json::to_string(arguments).unwrap_or_default());
                format!("{{\"{name_key}\": {name}, \"{arguments_key}\": {arguments}}}")
            }
            Family::Xml(style) => {
                let mut body = format!("{}{name}{}\n", style.call.0, style.call.1);
                for (key, value) in arguments {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let (before, after) = style.param;
                    body.push_str(&format!("{before}{key}{after}\n{value}\n{}\n", style.param_end));
                }
                body + style.call_end
            }
        };
        if open.is_empty() { body } else { format!("{open}\n{body}\n{close}") }
    }

    /// The result of a call, as the content of the message that answers it.
    pub fn result(&self, name: &str, content: &str) -> String {
        let _ = name;
        format!("<tool_response>\n{content}\n</tool_response>")
    }

    /// The part of a prompt that tells the model its tools and how to call them. `tools` are definitions as
    /// they are sent: each an object with name, description and parameters.
    pub fn instructions(&self, tools: &[Value]) -> String {
        let mut text = String::from("# Tools\n\nYou may call these functions:\n\n<tools>\n");
        for tool in tools {
            text.push_str(&tool.to_string());
            text.push('\n');
        }
        let mut example = Map::new();
        example.insert("argument".into(), Value::from("value"));
        text.push_str("</tools>\n\nTo call one, write, on lines of its own and with nothing around it:\n\n");
        text.push_str(&self.call("function_name", &example));
        text.push_str(
            "\n\nSeveral calls may follow each other. Results come back in <tool_response> tags.\n",
        );
        text
    }
}
