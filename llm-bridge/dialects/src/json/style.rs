//! How calls of one dialect are written.

/// Which members of the object name the tool and hold its arguments.
#[derive(Debug, Clone, Copy)]
pub struct JsonStyle {
    /// Keys whose value is the tool's name.
    pub(crate) names: &'static [&'static str],
    /// Keys whose value is the arguments: an object, or an object written as a string.
    pub(crate) arguments: &'static [&'static str],
    /// The only key is the tool's name, and its value is the arguments.
    pub(crate) keyed: bool,
    /// Calls are written as elements of an array.
    pub(crate) array: bool,
    /// The key of an object around the call, where there is one; else empty.
    pub(crate) outer: &'static str,
}

impl JsonStyle {
    /// The usual keys.
    pub const PLAIN: Self = Self::new(&["name", "tool_name"], &["arguments", "parameters", "args"]);
    /// The tool's name is the only key: `{"NAME": {…}}`.
    pub const KEYED: Self = Self { keyed: true, ..Self::new(&[], &[]) };

    /// These keys; the first of each is the one that is rendered.
    pub const fn new(names: &'static [&'static str], arguments: &'static [&'static str]) -> Self {
        Self { names, arguments, keyed: false, array: false, outer: "" }
    }

    /// The style with calls as elements of an array.
    pub const fn in_array(mut self) -> Self {
        self.array = true;
        self
    }

    /// The style with the call as the value of this key.
    pub const fn nested(mut self, outer: &'static str) -> Self {
        self.outer = outer;
        self
    }
}
