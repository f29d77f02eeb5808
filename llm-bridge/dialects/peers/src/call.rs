//! A call as it is compared: its name and its arguments as a JSON value.

use serde_json::Value;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The tool's name.
    pub name: String,
    /// The arguments; text that is no JSON is a string.
    pub arguments: Value,
}

impl Called {
    /// A call whose arguments are JSON text.
    pub fn from_text(name: impl Into<String>, arguments: &str) -> Self {
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.into()));
        Self { name: name.into(), arguments }
    }

    /// Name and arguments are the same.
    pub fn same(&self, other: &Self) -> bool {
        self.name == other.name && same(&self.arguments, &other.arguments)
    }
}

/// Equal as values; a whole number equals itself written as a fraction.
pub fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(key, one)| two.get(key).is_some_and(|two| same(one, two)))
        }
        _ => one == two,
    }
}

/// The same calls in the same order.
pub fn same_calls(one: &[Called], two: &[Called]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(Called::from_text("f", r#"{"a": 1}"#).same(&Called::from_text("f", r#"{"a": 1.0}"#)));
        assert!(!Called::from_text("f", r#"{"a": 1}"#).same(&Called::from_text("f", r#"{"a": "1"}"#)));
        assert_eq!(Called::from_text("f", "{cut").arguments, Value::String("{cut".into()));
    }
}
