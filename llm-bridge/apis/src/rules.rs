//! The types in which a provider's rules are written: one table for each provider, in its `tools.rs`.

use serde_json::{Map, Value};

use crate::{definition::Subject, names::NameRule};

/// A provider's rules for tool definitions.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Legal tool names.
    pub(crate) name: NameRule,
    /// The maximum length of a tool's description, in characters.
    pub(crate) max_description: Option<usize>,
    /// Whether a description is required.
    pub(crate) needs_description: bool,
    /// The maximum number of tools in a request.
    pub(crate) max_tools: Option<usize>,
    /// The schema dialects that are accepted, the preferred one first; the next is tried if a schema cannot be expressed.
    pub(crate) forms: &'static [Form],
    /// The form for which the provider guarantees that arguments match, if it has one.
    pub(crate) strict: Option<&'static Form>,
    /// Writes one definition.
    pub(crate) write: fn(&Parts<'_>) -> Value,
    /// Combines definitions into the `tools` of a request.
    pub(crate) list: fn(Vec<Value>) -> Value,
}

/// The parts of a definition.
#[derive(Debug)]
pub(crate) struct Parts<'t> {
    /// The name on the wire.
    pub(crate) name: &'t str,
    pub(crate) description: Option<&'t str>,
    /// The key of the schema.
    pub(crate) field: &'static str,
    pub(crate) schema: &'t Map<String, Value>,
    /// Whether the schema is in the strict form.
    pub(crate) strict: bool,
    pub(crate) subject: &'t Subject<'t>,
}

/// The part of JSON Schema that a provider accepts.
#[derive(Debug)]
pub(crate) struct Form {
    /// Whether only JSON Schema 2020-12 is accepted, and all of it is kept unchanged.
    pub(crate) whole: bool,
    /// The key of the schema in a definition.
    pub(crate) field: &'static str,
    /// The keywords that are accepted below the root.
    pub(crate) keywords: Keywords,
    /// The keywords that are accepted at the root, which is always an object.
    pub(crate) at_root: Keywords,
    /// Whether `$ref` is kept, with its target in `$defs`; otherwise references are inlined.
    pub(crate) references: bool,
    /// Whether `type` may be a list.
    pub(crate) type_lists: bool,
    /// Whether null is expressed as `nullable: true` instead of a type.
    pub(crate) nullable: bool,
    /// Whether every subschema needs exactly one `type`, and `anyOf` allows no constraints beside it.
    pub(crate) typed: bool,
    /// Whether an object needs `properties`.
    pub(crate) needs_properties: bool,
    /// Whether an array needs `items`.
    pub(crate) needs_items: bool,
    /// Whether `required` may only list declared properties.
    pub(crate) declared: bool,
    /// The values that are accepted in `enum`.
    pub(crate) values: Values,
    /// The accepted values of `format`, each with its type, if they are limited.
    pub(crate) formats: Option<&'static [(&'static str, &'static str)]>,
    /// Legal property names, and where the rule applies.
    pub(crate) property_names: Option<(NameRule, Depth)>,
    /// Whether all properties are required, with null for the optional ones, and objects are closed.
    pub(crate) strict: bool,
}

impl Form {
    /// All of JSON Schema 2020-12.
    pub(crate) const JSON_SCHEMA: Self = Self {
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

    /// All of JSON Schema 2020-12, kept unchanged.
    pub(crate) const WHOLE: Self = Self { whole: true, ..Self::JSON_SCHEMA };
}

impl Form {
    /// Whether the form is an allow list of keywords, not JSON Schema with exceptions.
    pub(crate) fn is_subset(&self) -> bool {
        matches!(self.keywords, Keywords::Only(_))
    }
}

/// A set of keywords.
#[derive(Debug)]
pub(crate) enum Keywords {
    /// All keywords.
    All,
    /// All keywords except these.
    AllBut(&'static [&'static str]),
    /// Only these keywords.
    Only(&'static [&'static str]),
}

impl Keywords {
    /// Whether a keyword is in the set.
    pub(crate) fn hold(&self, keyword: &str) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(not) => !not.contains(&keyword),
            Self::Only(these) => these.contains(&keyword),
        }
    }
}

/// The values that are accepted in `enum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    Any,
    Texts,
    TextsAndNumbers,
}

/// Where property names are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Root,
    Everywhere,
}
