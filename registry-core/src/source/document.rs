//! A file in TOML, JSON or YAML, with the line of everything in it.

use std::ops::Range;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// <https://toml.io>, version 1.0.
    Toml,
    /// RFC 8259.
    Json,
    /// YAML 1.2.
    Yaml,
}

impl Format {
    /// The format of a file by its name's extension.
    ///
    /// # Errors
    /// When the extension is none that is known.
    pub fn of_file(path: &std::path::Path) -> Result<Self, String> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Ok(Self::Toml),
            Some("json") => Ok(Self::Json),
            Some("yaml" | "yml") => Ok(Self::Yaml),
            _ => Err("its name has to end in .toml, .json, .yaml or .yml".to_owned()),
        }
    }
}

/// A value and the line on which it begins, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Node>),
    /// In the file's order.
    Table(Vec<(String, Node)>),
}

/// What is no document at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) line: u32,
    pub(super) message: String,
}

impl Node {
    /// The member of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match &self.data {
            Data::Table(members) => members.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// The value without its lines.
    pub(super) fn to_json(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Table(members) => {
                let member = |(key, node): &(String, Self)| (key.clone(), node.to_json());
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
        }
    }

    /// What it is, for a message.
    pub(super) fn kind(&self) -> &'static str {
        match &self.data {
            Data::List(_) => "an array",
            Data::Table(_) => "an object",
            Data::Scalar(Value::Null) => "null",
            Data::Scalar(Value::Bool(_)) => "a boolean",
            Data::Scalar(Value::Number(_)) => "a number",
            Data::Scalar(_) => "a string",
        }
    }
}

/// Reads a text.
pub(super) fn read(text: &str, format: Format) -> Result<Node, Unreadable> {
    match format {
        Format::Toml => {
            let lines = Lines::new(text);
            let table = DeTable::parse(text).map_err(|error| Unreadable {
                line: lines.of(error.span().unwrap_or_default()),
                message: error.message().to_owned(),
            })?;
            let span = table.span();
            Ok(of_toml(&DeValue::Table(table.into_inner()), span, &lines))
        }
        Format::Json => {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
                let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
                return Err(Unreadable { line, message: error.to_string() });
            }
            Ok(Json { text, at: 0, lines: Lines::new(text) }.value())
        }
        Format::Yaml => {
            let documents = MarkedYaml::load_from_str(text).map_err(|error| Unreadable {
                line: u32::try_from(error.marker().line()).unwrap_or(u32::MAX),
                message: error.info().to_owned(),
            })?;
            match documents.as_slice() {
                [] => Ok(Node { line: 1, data: Data::Table(Vec::new()) }),
                [document] => of_yaml(document),
                [_, second, ..] => Err(Unreadable {
                    line: line_of(second),
                    message: "there are several documents in the file; write one".to_owned(),
                }),
            }
        }
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(memchr_lines(text))
    }

    fn of(&self, span: Range<usize>) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= span.start)).unwrap_or(u32::MAX)
    }
}

fn memchr_lines(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Reads JSON that is known to be right, for the lines that its own reader does not tell.
struct Json<'t> {
    text: &'t str,
    at: usize,
    lines: Lines,
}

impl Json<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn value(&mut self) -> Node {
        let first = self.peek();
        let line = self.lines.of(self.at..self.at);
        let data = match first {
            Some(b'[') => {
                let mut items = Vec::new();
                while self.goes_on(b']') {
                    items.push(self.value());
                }
                Data::List(items)
            }
            Some(b'{') => {
                let mut members = Vec::new();
                while self.goes_on(b'}') {
                    let Value::String(name) = self.scalar() else { break };
                    // The colon.
                    self.peek();
                    self.at += 1;
                    members.push((name, self.value()));
                }
                Data::Table(members)
            }
            _ => Data::Scalar(self.scalar()),
        };
        Node { line, data }
    }

    /// Passes a bracket or a comma; false where that was the end.
    fn goes_on(&mut self, end: u8) -> bool {
        let passed = self.peek();
        self.at += 1;
        let ended = passed == Some(end) || passed.is_none();
        // An empty list or object ends behind its first bracket.
        if !ended && matches!(passed, Some(b'[' | b'{')) && self.peek() == Some(end) {
            self.at += 1;
            return false;
        }
        !ended
    }

    fn scalar(&mut self) -> Value {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next().and_then(Result::ok).unwrap_or_default();
        // At least one byte, so that this ends whatever it reads.
        self.at += values.byte_offset().max(1);
        value
    }
}

fn of_toml(value: &DeValue<'_>, span: Range<usize>, lines: &Lines) -> Node {
    let data = match value {
        DeValue::String(text) => Data::Scalar(text.as_ref().into()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Data::Scalar(parsed.map_or_else(|_| Value::from(number.as_str()), Value::from))
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            // JSON has no infinity.
            Data::Scalar(parsed.map_or_else(|| Value::from(number.as_str()), Value::Number))
        }
        DeValue::Boolean(truth) => Data::Scalar((*truth).into()),
        DeValue::Datetime(time) => Data::Scalar(time.to_string().into()),
        DeValue::Array(items) => {
            Data::List(items.iter().map(|item| of_toml(item.get_ref(), item.span(), lines)).collect())
        }
        DeValue::Table(members) => {
            let member = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                (key.to_string(), of_toml(value.get_ref(), value.span(), lines))
            };
            Data::Table(members.iter().map(member).collect())
        }
    };
    Node { line: lines.of(span), data }
}

fn line_of(node: &MarkedYaml<'_>) -> u32 {
    u32::try_from(node.span.start.line()).unwrap_or(u32::MAX)
}

fn of_yaml(node: &MarkedYaml<'_>) -> Result<Node, Unreadable> {
    let line = line_of(node);
    let fault = |message: &str| Unreadable { line, message: message.to_owned() };
    let data = match &node.data {
        YamlData::Value(scalar) => Data::Scalar(match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(truth) => (*truth).into(),
            Scalar::Integer(number) => (*number).into(),
            Scalar::FloatingPoint(number) => Number::from_f64(number.into_inner())
                .map(Value::Number)
                .ok_or_else(|| fault("a number that JSON does not have"))?,
            Scalar::String(text) => text.as_ref().into(),
        }),
        YamlData::Sequence(items) => Data::List(items.iter().map(of_yaml).collect::<Result<_, _>>()?),
        YamlData::Mapping(members) => {
            let member = |(key, value): (&MarkedYaml<'_>, &MarkedYaml<'_>)| {
                let name = match &key.data {
                    YamlData::Value(Scalar::String(name)) => name.to_string(),
                    // Names such as `1` or `true` are meant as they stand.
                    YamlData::Value(Scalar::Integer(name)) => name.to_string(),
                    YamlData::Value(Scalar::Boolean(name)) => name.to_string(),
                    _ => {
                        return Err(Unreadable {
                            line: line_of(key),
                            message: "a name has to be a string".to_owned(),
                        });
                    }
                };
                Ok((name, of_yaml(value)?))
            };
            Data::Table(members.iter().map(member).collect::<Result<_, _>>()?)
        }
        YamlData::Tagged(..) => return Err(fault("tags such as `!name` mean nothing here")),
        YamlData::Alias(_) => return Err(fault("an alias to something that is not there")),
        YamlData::Representation(..) | YamlData::BadValue => {
            return Err(fault("not a value that can be read"));
        }
    };
    Ok(Node { line, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_three_formats_say_the_same_with_their_lines() {
        let toml =
            "[[tools]]\nname = \"a\"\n\n[tools.parameters]\ntype = \"object\"\nmax = 1.5\nlist = [1, true]\n";
        let json = "{\"tools\": [\n  {\n    \"name\": \"a\",\n    \"parameters\": {\"type\": \"object\",\n \"max\": 1.5, \"list\": [1, true]}}]}";
        let yaml = "tools:\n- name: a\n  parameters:\n    type: object\n    max: 1.5\n    list: [1, true]\n";
        for (text, format, line) in
            [(toml, Format::Toml, 5), (json, Format::Json, 4), (yaml, Format::Yaml, 4)]
        {
            let node = read(text, format).unwrap();
            let expected = json!({"tools": [{"name": "a", "parameters": {"type": "object", "max": 1.5, "list": [1, true]}}]});
            assert_eq!(node.to_json(), expected, "{format:?}");
            let Data::List(tools) = &node.get("tools").unwrap().data else { panic!() };
            let kind = tools[0].get("parameters").unwrap().get("type").unwrap();
            assert_eq!((kind.line, kind.kind()), (line, "a string"), "{format:?}");
        }
    }

    #[test]
    fn json_is_read_as_what_it_is() {
        let text = "{\"a\": \"\\ud83d\\ude00\",\n \"b\": 18446744073709551615, \"c\": [], \"d\": {},\n\"e\": [{\"f\": -1.5e3}, null, [ ]]}";
        let node = read(text, Format::Json).unwrap();
        assert_eq!(node.to_json(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!((node.get("b").unwrap().line, node.get("e").unwrap().line), (2, 3));
    }

    #[test]
    fn what_cannot_be_read_names_its_line() {
        for (text, format, line) in [
            ("a = 1\nb = \n", Format::Toml, 2),
            ("{\n\"a\": 1,\n}", Format::Json, 3),
            ("{a: 1}", Format::Json, 1),
            ("a: 1\nb: [1\n", Format::Yaml, 3),
            ("a: !x 1\n", Format::Yaml, 1),
            ("a: 1\n---\nb: 2\n", Format::Yaml, 3),
        ] {
            let fault = read(text, format).unwrap_err();
            assert_eq!(fault.line, line, "{text}: {}", fault.message);
            assert!(!fault.message.is_empty());
        }
    }
}
