//! A file in TOML, JSON or YAML, with the line of everything in it.

use std::ops::Range;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// How deep lists and tables may be nested.
const MAX_DEPTH: usize = 127;

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
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
    pub(crate) fn of_file(path: &std::path::Path) -> Result<Self, String> {
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
pub(crate) struct Node {
    pub(crate) line: u32,
    pub(crate) data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Scalar(Value),
    List(Vec<Node>),
    /// In the file's order.
    Table(Vec<(String, Node)>),
}

/// What is no document at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) line: u32,
    pub(crate) message: String,
}

impl Node {
    /// The member of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.data {
            Data::Table(members) => members.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// The value without its lines.
    pub(crate) fn to_json(&self) -> Value {
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
    pub(crate) fn kind(&self) -> &'static str {
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
pub(crate) fn read(text: &str, format: Format) -> Result<Node, Unreadable> {
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
            let value: Value = serde_json::from_str(text).map_err(|error| Unreadable {
                line: u32::try_from(error.line()).unwrap_or(u32::MAX),
                message: error.to_string(),
            })?;
            // For lines only: YAML has no halves of characters and no tabs.
            let lines = read(&text.replace("\\u", "__").replace('\t', " "), Format::Yaml).ok();
            Ok(of_json(value, lines.as_ref()))
        }
        Format::Yaml => {
            too_deep(text)?;
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

/// YAML's parser and what it builds are recursive, and bounded by nothing: neither brackets nor indentation may go deeper than
/// what the parsers of TOML and JSON take.
fn too_deep(text: &str) -> Result<(), Unreadable> {
    let mut brackets = 0_usize;
    for (line, number) in text.lines().zip(1..) {
        let indentation = line.len() - line.trim_start_matches([' ', '-', '?', ':']).len();
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => brackets += 1,
                b']' | b'}' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
        }
        if brackets > MAX_DEPTH || indentation > 4 * MAX_DEPTH {
            return Err(Unreadable {
                line: number,
                message: format!("nested deeper than {MAX_DEPTH} levels"),
            });
        }
    }
    Ok(())
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

/// JSON is read by its own parser; the lines come from reading it as YAML, which contains it. Where that fails, as with a name that is
/// there twice, everything is on the first line.
fn of_json(value: Value, lines: Option<&Node>) -> Node {
    let line = lines.map_or(1, |node| node.line);
    let data = match value {
        Value::Array(items) => {
            let item = |(at, item)| {
                let lines = match lines.map(|node| &node.data) {
                    Some(Data::List(nodes)) => nodes.get(at),
                    _ => None,
                };
                of_json(item, lines)
            };
            Data::List(items.into_iter().enumerate().map(item).collect())
        }
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                let node = of_json(value, lines.and_then(|node| node.get(&name)));
                (name, node)
            };
            Data::Table(members.into_iter().map(member).collect())
        }
        scalar => Data::Scalar(scalar),
    };
    Node { line, data }
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
    fn k16_no_document_is_nested_without_bound() {
        let (lists, tables) = ("[".repeat(200_000), "{\"a\":".repeat(200_000));
        let indented: String = (0..2_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        let dashes = "- ".repeat(200_000);
        for text in [&lists, &tables, &format!("a = {lists}"), &indented, &dashes] {
            for format in [Format::Toml, Format::Json, Format::Yaml] {
                assert!(read(text, format).is_err(), "{format:?}");
            }
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(read(&deep, Format::Json).is_ok() && read(&deep, Format::Yaml).is_ok());
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
