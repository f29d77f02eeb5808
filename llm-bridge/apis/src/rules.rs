//! The words in which a provider's rules are written down: each provider is a table of these in a file of its own.

use serde_json::{Map, Value};

use crate::{definition::Subject, names::NameRule};

/// What a provider says of tool definitions.
#[derive(Debug)]
pub(crate) struct Rules {
    /// What tools may be called.
    pub(crate) name: NameRule,
    /// The most characters of a tool's description.
    pub(crate) max_description: Option<usize>,
    /// Whether a definition without a description is refused.
    pub(crate) needs_description: bool,
    /// The most tools in a request.
    pub(crate) max_tools: Option<usize>,
    /// The forms a schema may take, the preferred one first; a form that cannot hold a schema leaves it to the next.
    pub(crate) forms: &'static [Form],
    /// The form in which the provider promises that arguments fit, where it has one.
    pub(crate) strict: Option<&'static Form>,
    /// Writes one definition.
    pub(crate) write: fn(&Parts<'_>) -> Value,
    /// Puts definitions together as the `tools` of a request.
    pub(crate) list: fn(Vec<Value>) -> Value,
}

/// A tool on its way into a definition.
#[derive(Debug)]
pub(crate) struct Parts<'t> {
    /// The name on the wire.
    pub(crate) name: &'t str,
    pub(crate) description: Option<&'t str>,
    /// The key that the schema goes under.
    pub(crate) field: &'static str,
    pub(crate) schema: &'t Map<String, Value>,
    /// Whether the schema is in the strict form.
    pub(crate) strict: bool,
    pub(crate) subject: &'t Subject<'t>,
}

/// What a provider lets a schema say.
#[derive(Debug)]
pub(crate) struct Form {
    /// Whether a schema that is JSON Schema 2020-12 stays as it is, and no other is taken.
    pub(crate) whole: bool,
    /// The key of the definition that the schema goes under.
    pub(crate) field: &'static str,
    /// The keywords below the root.
    pub(crate) keywords: Keywords,
    /// The keywords at the root, which is always an object.
    pub(crate) at_root: Keywords,
    /// Whether `$ref` stays, with its target in `$defs`; otherwise targets are written where they are referred to.
    pub(crate) references: bool,
    /// Whether `type` may be a list.
    pub(crate) type_lists: bool,
    /// Whether null is said with `nullable: true`, and not as a type.
    pub(crate) nullable: bool,
    /// Whether every part needs one `type`, and `anyOf` stands without other constraints.
    pub(crate) typed: bool,
    /// Whether an object needs properties.
    pub(crate) needs_properties: bool,
    /// Whether an array needs `items`.
    pub(crate) needs_items: bool,
    /// Whether what is required has to be among the properties.
    pub(crate) declared: bool,
    /// The values that `enum` takes.
    pub(crate) values: Values,
    /// The values of `format` with the type that each is for, where they are limited.
    pub(crate) formats: Option<&'static [(&'static str, &'static str)]>,
    /// What properties may be called, and where that is asked.
    pub(crate) property_names: Option<(NameRule, Depth)>,
    /// Whether all properties are required and objects closed; optional ones take null instead.
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

    /// The same, for who reads all of it: nothing is resolved or taken away.
    pub(crate) const WHOLE: Self = Self { whole: true, ..Self::JSON_SCHEMA };
}

impl Form {
    /// Whether the form is a subset that takes nothing it does not know, and not JSON Schema with exceptions.
    pub(crate) fn is_subset(&self) -> bool {
        matches!(self.keywords, Keywords::Only(_))
    }
}

/// A set of keywords.
#[derive(Debug)]
pub(crate) enum Keywords {
    /// Every one.
    All,
    /// Every one but these.
    AllBut(&'static [&'static str]),
    /// These, and no other.
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

/// The values that `enum` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    Any,
    Texts,
    TextsAndNumbers,
}

/// Where property names are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Root,
    Everywhere,
}
