//! The arguments of a tool as flags, made from its schema: `toolrack call weather --city Oslo`.

use std::ffi::OsString;

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use registry_core::Tool;
use serde_json::{Map, Value};

/// The positional argument for all arguments at once. No flag of a tool has this id: it is no identifier.
const JSON: &str = "(json)";

/// Separates the flags of the tool from those of the program.
///
/// Returns the arguments of the program, and those that only the tool can know. `program` is the whole command of the program. Without
/// `call NAME` at the beginning nothing is separated.
pub(in crate::cli) fn separate(given: Vec<OsString>, program: &Command) -> (Vec<OsString>, Vec<OsString>) {
    let Some(call) = program.find_subcommand("call") else { return (given, Vec::new()) };
    let known = || program.get_arguments().chain(call.get_arguments());
    let (mut own, mut of_tool) = (Vec::new(), Vec::new());
    let mut given = given.into_iter().peekable();
    own.extend(given.next());
    let mut words = Vec::new();
    while let Some(argument) = given.next() {
        let is_value = |next: &OsString| !next.to_string_lossy().starts_with("--");
        let text = argument.to_string_lossy().into_owned();
        if words.first().is_some_and(|word| word != "call") || text == "--" {
            own.push(argument);
            own.extend(given);
            break;
        }
        let Some(flag) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')) else {
            words.push(text);
            own.push(argument);
            continue;
        };
        let (name, has_value) = flag.split_once('=').map_or((flag, false), |(name, _)| (name, true));
        let is_named = |arg: &&Arg| {
            arg.get_long() == Some(name) || arg.get_short().is_some_and(|short| name.starts_with(short))
        };
        // The tool has a help of its own.
        let is_help = words.len() > 1 && matches!(&*text, "--help" | "-h");
        match known().find(is_named).filter(|_| !is_help) {
            Some(arg) => {
                own.push(argument);
                if arg.get_action().takes_values()
                    && !has_value
                    && (text.starts_with("--") || name.len() == 1)
                {
                    own.extend(given.next());
                }
            }
            None if words.len() > 1 => {
                of_tool.push(argument);
                if !has_value {
                    of_tool.extend(given.next_if(is_value));
                }
            }
            None => own.push(argument),
        }
    }
    (own, of_tool)
}

/// The command that reads the arguments of a tool. `taken` are the flags of the program; an argument of that name has the flag
/// `--arg-NAME`.
pub(in crate::cli) fn command(tool: &Tool, taken: &Command) -> Command {
    let spec = tool.spec();
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    let required = required(&spec.input_schema);
    let is_taken = |flag: &str| {
        let call = taken.find_subcommand("call").into_iter().flat_map(Command::get_arguments);
        taken.get_arguments().chain(call).any(|arg| arg.get_long() == Some(flag))
    };
    let flags = properties.into_iter().flatten().map(|(name, schema)| {
        let flag = name.replace('_', "-");
        let flag = if is_taken(&flag) || flag == "help" { format!("arg-{flag}") } else { flag };
        let flag = argument(name, schema).long(flag);
        if required.contains(&name.as_str()) { flag.help_heading("Required") } else { flag }
    });
    let json = Arg::new(JSON).value_name("JSON").help("All arguments as a JSON object");
    Command::new(tool.name().to_owned())
        .bin_name(format!("toolrack call {}", tool.name()))
        .about(spec.description.clone().unwrap_or_default())
        .args(flags)
        .arg(json)
}

/// The names of the arguments that have to be there.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn argument(name: &str, schema: &Value) -> Arg {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let default = schema.get("default").map(|default| format!("{description} [default: {default}]"));
    let arg = Arg::new(name.to_owned()).help(default.unwrap_or_else(|| description.to_owned()));
    if is(schema, "boolean") {
        let words = PossibleValuesParser::new(["true", "false"]);
        return arg.value_parser(words).num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("value");
    let choices = choices(schema);
    let arg = arg.value_name(kind.to_uppercase()).allow_hyphen_values(true);
    let arg = if kind == "array" { arg.action(ArgAction::Append) } else { arg };
    if choices.is_empty() {
        return arg;
    }
    arg.value_parser(PossibleValuesParser::new(choices))
}

/// The words that a value may be, where the schema lists nothing else.
fn choices(schema: &Value) -> Vec<PossibleValue> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.map(|choice| (choice, None));
    let described = ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let described = described.map(|choice| {
        (choice.get("const").unwrap_or(&Value::Null), choice.get("description").and_then(Value::as_str))
    });
    let all: Option<Vec<PossibleValue>> = listed
        .chain(described)
        .map(|(word, help)| {
            let choice = PossibleValue::new(word.as_str()?.to_owned());
            Some(match help {
                Some(help) => choice.help(help.to_owned()),
                None => choice,
            })
        })
        .collect();
    all.unwrap_or_default()
}

/// The arguments that were given, as the model would give them. What does not fit the schema is found when the call is made.
///
/// # Errors
/// When the positional argument is not a JSON object.
pub(super) fn values(tool: &Tool, given: &ArgMatches) -> Result<Map<String, Value>, String> {
    let mut values = given.get_one::<String>(JSON).map_or(Ok(Map::new()), |json| object(json))?;
    let properties = tool.spec().input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let Some(texts) = given.get_many::<String>(name) else { continue };
        let mut texts = texts.map(|text| value(text, schema));
        let value = match (is(schema, "array"), texts.len()) {
            (true, 1) => texts.next().map(|one| if one.is_array() { one } else { Value::Array(vec![one]) }),
            (true, _) => Some(texts.collect()),
            (false, _) => texts.next_back(),
        };
        values.insert(name.clone(), value.unwrap_or_default());
    }
    Ok(values)
}

/// All arguments, as one JSON object.
pub(super) fn object(json: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(json).map_err(|error| {
        format!("the arguments are not a JSON object ({error}); write them as in '{{\"city\": \"Oslo\"}}', or as flags: --city Oslo")
    })
}

/// A text as the value that the schema wants: itself, or the JSON that it is.
pub(super) fn value(text: &str, schema: &Value) -> Value {
    let wants_text = is(schema, "string") || !choices(schema).is_empty();
    let item = schema.get("items").filter(|_| is(schema, "array") && !text.trim_start().starts_with('['));
    match item {
        Some(item) => value(text, item),
        None if wants_text => Value::from(text),
        None => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// Whether values of this type are the only ones, besides null.
fn is(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|one| one == kind) && kinds.iter().all(|one| one == kind || one == "null")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Registry, ToolPolicy, ToolSpec};
    use serde_json::json;

    use super::*;
    use crate::cli::help;

    fn separated(line: &str) -> (String, String) {
        let (own, of_tool) = separate(line.split(' ').map(OsString::from).collect(), &help::command());
        let joined = |all: Vec<OsString>| {
            all.iter().map(|one| one.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        (joined(own), joined(of_tool))
    }

    #[test]
    fn b18_flags_of_the_tool_are_told_from_those_of_the_program() {
        for (line, own, of_tool) in [
            ("toolrack call weather --city Oslo", "toolrack call weather", "--city Oslo"),
            ("toolrack call weather --city=Oslo --yes", "toolrack call weather --yes", "--city=Oslo"),
            (
                "toolrack call --level user weather --days 3 -y",
                "toolrack call --level user weather -y",
                "--days 3",
            ),
            (
                "toolrack --config a.toml call weather -v --days -3",
                "toolrack --config a.toml call weather -v",
                "--days -3",
            ),
            ("toolrack call weather {} --help", "toolrack call weather {}", "--help"),
            ("toolrack call --help", "toolrack call --help", ""),
            ("toolrack call weather --loud --city Oslo", "toolrack call weather", "--loud --city Oslo"),
            // Of other commands nothing is the tool's.
            ("toolrack chat --city Oslo", "toolrack chat --city Oslo", ""),
            ("toolrack", "toolrack", ""),
        ] {
            assert_eq!(separated(line), (own.to_owned(), of_tool.to_owned()), "{line}");
        }
    }

    fn read(line: &[&str]) -> Result<Value, String> {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "default": 3},
                "max_results": {"type": ["integer", "null"]},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "loud": {"type": "boolean"},
                "level": {"type": "string"},
                "place": {"type": "object"},
            },
            "required": ["city"],
        });
        registry.register(ToolSpec::new("weather", schema), ToolPolicy::new(), None).unwrap();
        let tool = registry.get("weather").unwrap();
        let given = command(&tool, &help::command()).no_binary_name(true).try_get_matches_from(line);
        values(&tool, &given.map_err(|error| error.to_string())?).map(Value::Object)
    }

    #[test]
    fn b18_flags_are_arguments_by_the_schema() {
        for (line, arguments) in [
            (&["--city", "7", "--days", "7"][..], json!({"city": "7", "days": 7})),
            (&["--max-results=5", "--unit", "kelvin"], json!({"max_results": 5, "unit": "kelvin"})),
            (&["--tags", "a", "--tags", "1"], json!({"tags": ["a", "1"]})),
            (&["--tags", r#"["a", "b"]"#], json!({"tags": ["a", "b"]})),
            (&["--tags", "a"], json!({"tags": ["a"]})),
            (&["--loud", "--city", "Oslo"], json!({"loud": true, "city": "Oslo"})),
            (&["--loud=false"], json!({"loud": false})),
            (&["--place", r#"{"lat": 1.5}"#], json!({"place": {"lat": 1.5}})),
            // A flag of the program has this name.
            (&["--arg-level", "high"], json!({"level": "high"})),
            // Not what the schema wants: the call says so.
            (&["--days", "three"], json!({"days": "three"})),
            (&[r#"{"city": "Oslo", "days": 1}"#, "--days", "2"], json!({"city": "Oslo", "days": 2})),
        ] {
            assert_eq!(read(line), Ok(arguments), "{line:?}");
        }
    }

    #[test]
    fn b18_a_misspelt_flag_gets_the_nearest() {
        let reported = read(&["--ctiy", "Oslo"]).unwrap_err();
        assert!(reported.contains("'--city'"), "{reported}");
        let reported = read(&["--unit", "kelvn"]).unwrap_err();
        assert!(reported.contains("'kelvin'"), "{reported}");
        assert!(read(&["[1]"]).unwrap_err().contains("--city Oslo"));
    }
}
