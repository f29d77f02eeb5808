//! The tools offered to the model in one turn, as the scanner needs to know them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use regex::Regex;
use serde_json::Value;

use super::byte_set::ByteSet;

/// A longer word is no name where the names are unknown.
const MAX_NAME: usize = 64;

/// A longer word before a bracket is no name.
const MAX_CALLED: usize = 256;

/// The tools offered in one turn: wire name, JSON schema, text tag. Built once a turn and shared.
#[derive(Debug, Default)]
pub struct Offered {
    any: bool,
    tools: HashMap<String, Option<Arc<Value>>>,
    /// The first bytes of their names.
    begins: ByteSet,
    tags: Vec<TagLine>,
}

/// One tool as it is offered.
///
/// ```
/// use serde_json::json;
/// use toolrack_dialects::{Offered, OfferedTool, Tag};
///
/// let light = OfferedTool::new("light").schema(json!({"properties": {"on": {"type": "boolean"}}}));
/// let research = OfferedTool::new("research").tag(Tag::new("RESEARCH"));
/// assert!(Offered::new([light, research]).contains("light"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OfferedTool {
    /// The name the model was given.
    pub name: String,
    /// The JSON schema of its arguments object; types values that a dialect writes as plain text.
    pub schema: Option<Arc<Value>>,
    /// The line that calls it, where it declares one.
    pub tag: Option<Tag>,
}

/// A line `PREFIX: argument` that calls a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tag {
    /// What the line begins with, without the colon.
    pub tag_prefix: String,
    /// A regular expression (of the `regex` crate) that the whole rest of the line has to match.
    pub arg_pattern: String,
    /// The arguments that the groups of the expression stand for, in their order. Empty: its named groups, or
    /// else the tool's only required property, or `raw_arg`.
    pub arg_groups: Vec<String>,
    /// The line is taken out of the text the user sees.
    pub strip_from_display: bool,
}

impl Default for Tag {
    fn default() -> Self {
        Self {
            tag_prefix: String::new(),
            arg_pattern: "(.+)".into(),
            arg_groups: Vec::new(),
            strip_from_display: true,
        }
    }
}

/// A tool's tag.
#[derive(Debug)]
pub(super) struct TagLine {
    pub(super) tool: String,
    /// With its colon.
    pub(super) prefix: String,
    tag: Tag,
    /// Compiled for the first line with the prefix: most turns have none.
    pattern: OnceLock<Option<Pattern>>,
}

/// What is read from a tag's line.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    /// Argument and the group that holds it.
    pub(super) groups: Vec<(String, usize)>,
}

impl Offered {
    /// The names are unknown: any name counts as offered and there is no schema.
    pub fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    /// No tools: nothing is a call.
    pub fn none() -> Self {
        Self::default()
    }

    /// Exactly these tools. A tag with an empty prefix or a faulty expression is ignored; [`Tag::check`] reports it.
    pub fn new(tools: impl IntoIterator<Item = OfferedTool>) -> Self {
        let mut offered = Self::default();
        for OfferedTool { name, schema, tag } in tools {
            if let Some(tag) = tag
                && let Some(prefix) = tag.prefix()
            {
                offered.tags.push(TagLine { tool: name.clone(), prefix, tag, pattern: OnceLock::new() });
            }
            name.bytes().next().into_iter().for_each(|first| offered.begins.insert(first));
            offered.tools.insert(name, schema);
        }
        offered
    }

    /// Whether a call to this name is a call even without an explicit delimiter.
    pub fn contains(&self, name: &str) -> bool {
        !name.is_empty() && (self.any || self.tools.contains_key(name))
    }

    /// The name without white space around it or the namespace before it, where only so it is that of a tool.
    pub(super) fn resolve(&self, name: String) -> String {
        if self.tools.contains_key(&name) {
            return name;
        }
        let trimmed = name.trim();
        let name = if trimmed.len() < name.len() { trimmed.to_owned() } else { name };
        if self.tools.contains_key(&name) {
            return name;
        }
        // Where the names are unknown, only one that is written twice is that of no tool.
        let is_tool = |space: &str, bare: &str| self.tools.contains_key(bare) || self.any && space == bare;
        let unnumbered = without_number(&name);
        if self.tools.contains_key(unnumbered) {
            return unnumbered.to_owned();
        }
        let splits = [name.split_once('.'), name.rsplit_once(':'), unnumbered.split_once('.')];
        let bare = splits.into_iter().flatten().find(|(space, bare)| is_tool(space, bare));
        bare.map(|(_, bare)| bare.to_owned()).unwrap_or(name)
    }

    /// The longest name of an offered tool with which this longer one begins.
    pub(super) fn longest_in<'t>(&'t self, name: &str) -> Option<&'t str> {
        let begins = |tool: &&String| tool.len() < name.len() && name.starts_with(tool.as_str());
        self.tools.keys().filter(begins).max_by_key(|tool| tool.len()).map(String::as_str)
    }

    /// The offered tool whose name the text begins with, up to something else; an error while more text decides.
    pub(super) fn named_by<'t>(&self, text: &'t str, eof: bool) -> Result<Option<&'t str>, ()> {
        let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ':' | '/' | '@');
        let end = text.find(|char| !part(char)).unwrap_or(text.len());
        let Some(word) = text.get(..end).filter(|word| !word.is_empty()) else { return Ok(None) };
        // An id of the call may stand after it.
        let bare = word.split_once(':').map_or(word, |(bare, _)| bare);
        if end == text.len() && !eof {
            let open = |tool: &String| tool.starts_with(word) || bare.len() < end && tool == bare;
            let open = self.any && end <= MAX_NAME || self.tools.keys().any(open);
            return if open { Err(()) } else { Ok(None) };
        }
        Ok((self.contains(word) || self.contains(bare)).then_some(word))
    }

    /// Whether the text begins with a call of an offered tool as programs have it, `NAME(`; an error while more text decides.
    pub(super) fn calls(&self, text: &str, eof: bool) -> Result<bool, ()> {
        let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.');
        let area = text.get(..text.floor_char_boundary(MAX_CALLED)).unwrap_or_default();
        let Some(end) = area.find(|char| !part(char)) else {
            return if area.len() == text.len() && !eof { Err(()) } else { Ok(false) };
        };
        let (name, behind) = text.split_at_checked(end).unwrap_or_default();
        Ok(behind.starts_with('(') && self.contains(&self.resolve(name.to_owned())))
    }

    /// Whether the text begins with the name of an offered tool as a tag; an error while more text decides.
    pub(super) fn tagged(&self, text: &str, eof: bool) -> Result<bool, ()> {
        let Some(name) = text.strip_prefix('<') else { return Ok(false) };
        let area = name.get(..name.floor_char_boundary(MAX_CALLED)).unwrap_or_default();
        match area.split_once('>') {
            Some((name, _)) => Ok(self.tools.contains_key(name)),
            None if area.len() == name.len()
                && !eof
                && self.tools.keys().any(|tool| tool.starts_with(name)) =>
            {
                Err(())
            }
            None => Ok(false),
        }
    }

    /// Whether a tool's name begins with this byte.
    pub(super) fn begins(&self, byte: u8) -> bool {
        self.begins.contains(byte) || self.any && (byte.is_ascii_alphabetic() || byte == b'_')
    }

    /// Whether nothing at all was offered.
    pub fn is_empty(&self) -> bool {
        !self.any && self.tools.is_empty()
    }

    /// Whether the names are known.
    pub(super) fn is_named(&self) -> bool {
        !self.any
    }

    /// Whether the tool has arguments that have to be there.
    pub(super) fn requires(&self, name: &str) -> bool {
        let required = self.schema(name).and_then(|schema| schema.get("required")?.as_array());
        required.is_some_and(|names| !names.is_empty())
    }

    /// Whether the tool is known to have no arguments.
    pub(super) fn takes_none(&self, name: &str) -> bool {
        let properties =
            |schema: &Value| schema.get("properties").and_then(Value::as_object).map(|all| all.is_empty());
        self.schema(name).is_some_and(|schema| properties(schema).unwrap_or(schema.get("type").is_some()))
    }

    /// The schema of a tool's arguments.
    pub fn schema(&self, name: &str) -> Option<&Value> {
        self.tools.get(name)?.as_deref()
    }

    pub(super) fn tags(&self) -> &[TagLine] {
        &self.tags
    }
}

/// The name without the number of the call after it.
fn without_number(name: &str) -> &str {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once(':').filter(|(_, number)| is_number(number)).map_or(name, |(bare, _)| bare)
}

impl OfferedTool {
    /// A tool of which only the name is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The tool with this JSON schema of its arguments.
    pub fn schema(mut self, schema: impl Into<Arc<Value>>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// The tool with this line that calls it.
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tag = Some(tag);
        self
    }
}

impl Tag {
    /// A line that begins with this, without the colon. All that follows is the argument, and the line is not shown.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { tag_prefix: prefix.into(), ..Self::default() }
    }

    /// Says what is wrong with a tag, for whoever declares it.
    ///
    /// # Errors
    /// An empty prefix, or an expression the `regex` crate refuses.
    pub fn check(&self) -> Result<(), String> {
        self.prefix().ok_or("the tag prefix is empty")?;
        self.compile(None).map(drop)
    }

    /// What the line begins with, with the colon.
    fn prefix(&self) -> Option<String> {
        let prefix = self.tag_prefix.trim().trim_end_matches(':');
        (!prefix.is_empty()).then(|| format!("{prefix}:"))
    }

    fn compile(&self, schema: Option<&Value>) -> Result<Pattern, String> {
        let regex = Regex::new(&format!("^(?:{})$", self.arg_pattern)).map_err(|error| error.to_string())?;
        let named = || {
            let names = regex.capture_names().enumerate();
            names.filter_map(|(group, name)| Some((name?.to_owned(), group))).collect::<Vec<_>>()
        };
        let groups = if self.arg_groups.is_empty() {
            let named = named();
            if named.is_empty() {
                vec![(only_property(schema).unwrap_or("raw_arg").to_owned(), regex.captures_len().min(2) - 1)]
            } else {
                named
            }
        } else {
            self.arg_groups.iter().enumerate().map(|(index, name)| (name.clone(), index + 1)).collect()
        };
        Ok(Pattern { regex, groups })
    }
}

impl TagLine {
    /// What is read from the line; `None` for an expression that is faulty. The schema is the tool's.
    pub(super) fn pattern(&self, schema: Option<&Value>) -> Option<&Pattern> {
        self.pattern.get_or_init(|| self.tag.compile(schema).ok()).as_ref()
    }

    /// Whether the line is taken out of the text.
    pub(super) fn is_stripped(&self) -> bool {
        self.tag.strip_from_display
    }
}

fn only_property(schema: Option<&Value>) -> Option<&str> {
    let schema = schema?;
    let required = schema.get("required").and_then(Value::as_array);
    if let Some([name]) = required.map(Vec::as_slice) {
        return name.as_str();
    }
    let mut names = schema.get("properties")?.as_object()?.keys();
    names.next().filter(|_| names.next().is_none()).map(String::as_str)
}
