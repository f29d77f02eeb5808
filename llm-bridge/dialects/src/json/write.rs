//! Writes calls of this family.

use serde_json::{Map, Value};

use super::JsonStyle;

impl JsonStyle {
    /// A call as JSON; nothing where it cannot be written.
    pub(crate) fn write(&self, name: &str, arguments: &Map<String, Value>) -> Option<String> {
        let (quoted, arguments) = (Value::from(name), serde_json::to_string(arguments).ok()?);
        let mut call = if self.keyed {
            format!("{{{quoted}: {arguments}}}")
        } else {
            let (names, keys) = (self.names.first()?, self.arguments.first()?);
            format!("{{\"{names}\": {quoted}, \"{keys}\": {arguments}}}")
        };
        if !self.outer.is_empty() {
            call = format!("{{\"{}\": {call}}}", self.outer);
        }
        Some(if self.array { format!("[{call}]") } else { call })
    }
}
