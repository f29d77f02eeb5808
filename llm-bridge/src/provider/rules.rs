//! The words in which a provider's rules are written down: each provider is a table of these in a file of its own.

use registry_core::{ToolPolicy, ToolSpec};
use serde_json::{Map, Value};

use super::names::NameRule;

/// What a provider says of tool definitions.
#[derive(Debug)]
pub(super) struct Rules {
    /// What tools may be called.
    pub(super) name: NameRule,
    /// The most characters of a tool's description.
    pub(super) max_description: Option<usize>,
    /// Whether a definition without a description is refused.
    pub(super) needs_description: bool,
    /// The most tools in a request.
    pub(super) max_tools: Option<usize>,
    /// The forms a schema may take, the preferred one first; a form that cannot hold a schema leaves it to the next.
    pub(super) forms: &'static [Form],
    /// The form in which the provider promises that arguments fit, where it has one.
    pub(super) strict: Option<&'static Form>,
    /// Writes one definition.
    pub(super) write: fn(&Parts<'_>) -> Value,
    /// Puts definitions together as the `tools` of a request.
    pub(super) list: fn(Vec<Value>) -> Value,
}

/// A tool on its way into a definition.
#[derive(Debug)]
pub(super) struct Parts<'t> {
    /// The name on the wire.
    pub(super) name: &'t str,
    pub(super) description: Option<&'t str>,
    /// The key that the schema goes under.
    pub(super) field: &'static str,
    pub(super) schema: &'t Map<String, Value>,
    /// Whether the schema is in the strict form.
    pub(super) strict: bool,
    pub(super) spec: &'t ToolSpec,
    pub(super) policy: Option<&'t ToolPolicy>,
}

/// What a provider lets a schema say.
#[derive(Debug)]
pub(super) struct Form {
    /// Whether a schema that is JSON Schema 2020-12 stays as it is, and no other is taken.
    pub(super) whole: bool,
    /// The key of the definition that the schema goes under.
    pub(super) field: &'static str,
    /// The keywords below the root.
    pub(super) keywords: Keywords,
    /// The keywords at the root, which is always an object.
    pub(super) at_root: Keywords,
    /// Whether `$ref` stays, with its target in `$defs`; otherwise targets are written where they are referred to.
    pub(super) references: bool,
    /// Whether `type` may be a list.
    pub(super) type_lists: bool,
    /// Whether null is said with `nullable: true`, and not as a type.
    pub(super) nullable: bool,
    /// Whether every part needs one `type`, and `anyOf` stands without other constraints.
    pub(super) typed: bool,
    /// Whether an object needs properties.
    pub(super) needs_properties: bool,
    /// Whether an array needs `items`.
    pub(super) needs_items: bool,
    /// Whether what is required has to be among the properties.
    pub(super) declared: bool,
    /// The values that `enum` takes.
    pub(super) values: Values,
    /// The values of `format` with the type that each is for, where they are limited.
    pub(super) formats: Option<&'static [(&'static str, &'static str)]>,
    /// What properties may be called, and where that is asked.
    pub(super) property_names: Option<(NameRule, Depth)>,
    /// Whether all properties are required and objects closed; optional ones take null instead.
    pub(super) strict: bool,
}

impl Form {
    /// All of JSON Schema 2020-12.
    pub(super) const JSON_SCHEMA: Self = Self {
        whole: false,
        field: "inputSchema",
        keywords: Keywords::All,
        at_root: Keywords::All,
        references: true,
        type_lists: true,
        nullable: false,
        typed: false,
        needs_properties: false,
        needs_items: false,
        declared: false,
        values: Values::Any,
        formats: None,
        property_names: None,
        strict: false,
    };

    /// The same, for who reads all of it: nothing is resolved or taken away.
    pub(super) const WHOLE: Self = Self { whole: true, ..Self::JSON_SCHEMA };
}

impl Form {
    /// Whether the form is a subset that takes nothing it does not know, and not JSON Schema with exceptions.
    pub(super) fn is_subset(&self) -> bool {
        matches!(self.keywords, Keywords::Only(_))
    }
}

/// A set of keywords.
#[derive(Debug)]
pub(super) enum Keywords {
    /// Every one.
    All,
    /// Every one but these.
    AllBut(&'static [&'static str]),
    /// These, and no other.
    Only(&'static [&'static str]),
}

impl Keywords {
    /// Whether a keyword is in the set.
    pub(super) fn hold(&self, keyword: &str) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(not) => !not.contains(&keyword),
            Self::Only(these) => these.contains(&keyword),
        }
    }
}

/// The values that `enum` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Any,
    Texts,
    TextsAndNumbers,
}

/// Where property names are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Root,
    Everywhere,
}
