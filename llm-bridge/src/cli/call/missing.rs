//! Asks in the terminal for required arguments that were not given.

use std::io::{IsTerminal, Write};

use registry_core::Tool;
use serde_json::{Map, Value};

use super::flags;
use crate::cli::{
    approve::{self, Input},
    terminal::one_line,
};

/// Fills in what is required and missing. Without a terminal nothing is asked: the call is refused with what is missing.
///
/// # Errors
/// When nothing is answered.
pub(super) async fn ask(
    tool: &Tool,
    arguments: &mut Map<String, Value>,
    input: &mut Input,
) -> Result<(), String> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    let schema = &tool.spec().input_schema;
    for name in flags::required(schema) {
        if arguments.contains_key(name) {
            continue;
        }
        let property = schema.pointer("/properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null);
        let _ = write!(std::io::stderr(), "{}", question(name, property));
        let is_secret = property.get("writeOnly") == Some(&Value::Bool(true));
        let line = approve::line(input, is_secret).await;
        let line = line.map_err(|error| format!("cannot read standard input: {error}"))?.unwrap_or_default();
        if line.trim().is_empty() {
            return Err(format!(
                "`{name}` is required; `toolrack call {} --help` lists the arguments",
                tool.name()
            ));
        }
        arguments.insert(name.to_owned(), flags::value(&line, property));
    }
    Ok(())
}

/// `city (City name, such as Oslo): `
fn question(name: &str, property: &Value) -> String {
    let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
    let choices = property.get("enum").and_then(Value::as_array).into_iter().flatten();
    let choices: Vec<String> =
        choices.map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)).collect();
    let choices = if choices.is_empty() { String::new() } else { format!("; {}", choices.join(", ")) };
    format!("{}: ", one_line(&format!("{name} ({description}{choices})")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_question_says_what_is_wanted() {
        let unit = json!({"type": "string", "enum": ["celsius", "kelvin"], "description": "The unit"});
        assert_eq!(super::question("unit", &unit), "unit (The unit; celsius, kelvin): ");
    }
}
