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
        let mut out = String::with_capacity(self.result.len() + name.len() + content.len());
        let mut rest = self.result;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let known = [("name}", name), ("content}", content)];
            let found = known.iter().find_map(|(key, value)| Some((after.strip_prefix(key)?, *value)));
            let (after, value) = found.unwrap_or((after, "{"));
            out.push_str(value);
            rest = after;
        }
        out + rest
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
        text.push_str("\n\nSeveral calls may follow each other. Each result comes back as\n\n");
        text.push_str(&self.result("function_name", "what the function returned"));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::dialect::{dialect, dialects};

    #[test]
    fn p8_renders_in_the_words_of_the_dialect() {
        let arguments = json!({"city": "Oslo", "days": 3});
        let call = |name: &str| dialect(name).unwrap().call("weather", arguments.as_object().unwrap());
        let json = r#"{"name": "weather", "arguments": {"city":"Oslo","days":3}}"#;
        assert_eq!(call("hermes"), format!("<tool_call>\n{json}\n</tool_call>"));
        assert_eq!(call("bare_json"), json);
        assert_eq!(
            call("qwen3_coder"),
            "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n\
             <parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
        );
        let row = dialect("hermes").unwrap();
        assert_eq!(row.result("weather", "{name}"), "<tool_response>\n{name}\n</tool_response>");
        for row in dialects() {
            let text = row.instructions(&[json!({"name": "weather"})]);
            assert!(text.contains(r#"{"name":"weather"}"#) && text.contains("function_name"));
        }
    }
}
