//! Looks for what the compiler does not find in tools: in their names, descriptions and schemas, and in their size in a prompt.

use std::{collections::BTreeMap, path::Path};

use registry_core::{Caller, Permission, Registry, Source};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolrack_apis::Provider;

use crate::listing::{self, Row};

/// So many tokens all definitions together may take where nothing else is said.
pub(crate) const BUDGET: usize = 8000;
/// Some providers refuse a longer description, in bytes.
const MAX_DESCRIPTION: usize = 1024;

/// What was found in the tools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CheckedTools")]
pub(crate) struct Checked {
    /// How many tools there are.
    pub(crate) tools: usize,
    /// How many tokens the definitions take in a prompt, about; those of deferred tools are not counted.
    pub(crate) tokens: usize,
    /// How many they may take.
    pub(crate) budget: usize,
    /// What is to be mended.
    pub(crate) faults: Vec<String>,
    /// What is to be looked at.
    pub(crate) warnings: Vec<String>,
}

/// Checks all tools of a registry, also those that are off.
pub(crate) fn check(registry: &Registry, budget: usize) -> Checked {
    let context = registry.context(Caller::new("check", Permission::Owner));
    let mut rows = listing::rows(registry, &context, true);
    rows.retain(|row| registry.get(&row.name).is_some());
    let mut faults: Vec<String> = registry.duplicates().iter().map(ToString::to_string).collect();
    faults.extend(registry.faults().iter().map(ToString::to_string));
    let all = registry.list_all(true);
    for tool in &all {
        let found = tool.inconsistencies().into_iter();
        faults.extend(found.map(|fault| format!("{} ({}): {fault}", tool.name(), tool.source())));
    }
    let compiled = all.iter().filter_map(|tool| match tool.source() {
        Source::Compiled(place) => Some((place.file, [tool.name(), tool.function()?])),
        _ => None,
    });
    faults.extend(misnamed_files(compiled));
    faults.extend(rows.iter().flat_map(faults_of));
    let tokens: usize = rows.iter().filter(|row| !row.deferred).map(|row| row.tokens).sum();
    if tokens > budget {
        faults.push(format!(
            "all definitions take about {tokens} tokens, which is over the budget of {budget}; shorten descriptions, defer tools or switch them off"
        ));
    }
    let mut warnings: Vec<String> =
        rows.iter().filter_map(sounds_destructive).chain(rows.iter().filter_map(may_send)).collect();
    let reported = rows.iter().filter(|row| row.enabled && !row.deferred).count();
    if let Some(most) = Provider::OpenAi.max_tools().filter(|most| reported > *most) {
        // Local servers have no such limit, so this is not an error.
        warnings.push(format!(
            "{reported} tools go with every request, of which the API of OpenAI takes {most}; defer tools or switch them off"
        ));
    }
    Checked { tools: rows.len(), tokens, budget, faults, warnings }
}

/// Many builds of llama.cpp refuse a `maxLength` from here on, because they unroll it in the grammar of the arguments.
const LENGTH_REFUSED: u64 = 2000;

/// Every `maxLength` in a schema, with its path.
fn longest_texts(schema: &Value, place: &str) -> Vec<(String, u64)> {
    let own = schema.get("maxLength").and_then(Value::as_u64).map(|length| (place.to_owned(), length));
    let fields = schema.as_object().into_iter().flatten();
    // The value of a keyword such as `default` is not a schema; one that looks like it is not worth distinguishing.
    let inside = fields.flat_map(|(name, part)| {
        let keyword = matches!(name.as_str(), "properties" | "items" | "anyOf" | "oneOf" | "allOf");
        let place = match (keyword, place.is_empty()) {
            (true, _) => place.to_owned(),
            (false, true) => name.clone(),
            (false, false) => format!("{place}.{name}"),
        };
        longest_texts(part, &place)
    });
    let items = schema.as_array().into_iter().flatten().flat_map(|part| longest_texts(part, place));
    own.into_iter().chain(inside).chain(items).collect()
}

/// The files with one tool that are named after neither the tool nor its function. Those of other projects have whole paths.
fn misnamed_files<'t>(tools: impl Iterator<Item = (&'t str, [&'t str; 2])>) -> Vec<String> {
    let mut by_file: BTreeMap<&str, Vec<[&str; 2]>> = BTreeMap::new();
    for (file, names) in tools.filter(|(file, _)| Path::new(file).is_relative()) {
        by_file.entry(file).or_default().push(names);
    }
    let fault = |(file, tools): (&str, Vec<[&str; 2]>)| {
        let [[name, function]] = tools[..] else { return None };
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        let own_name = name.rsplit('.').next();
        let is_named_after_it = stem == own_name || stem == Some(function);
        (!is_named_after_it)
            .then(|| format!("{name} ({file}): the file should be named after its tool: {function}.rs"))
    };
    by_file.into_iter().filter_map(fault).collect()
}

/// Faults that the compiler does not find.
fn faults_of(row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("{} ({}): {what}", row.name, row.source));
    if row.name.len() > 64 {
        fault(format!("the name has {} characters; providers take 64", row.name.len()));
    }
    if row.description.len() > MAX_DESCRIPTION {
        let length = row.description.len();
        fault(format!("the description has {length} bytes; providers take {MAX_DESCRIPTION}"));
    }
    if is_placeholder(&row.description) {
        fault(
            "the description is a placeholder: say what the tool does, when to use it and what it returns"
                .to_owned(),
        );
    }
    let long = longest_texts(&row.parameters, "");
    for (place, length) in long.into_iter().filter(|(_, length)| *length >= LENGTH_REFUSED) {
        fault(format!(
            "`{place}` has a `maxLength` of {length}; for {LENGTH_REFUSED} or more some llama.cpp servers refuse a request with \
             all its tools: leave it out and check the length in the function"
        ));
    }
    let properties = row.parameters.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let described = property.get("description").and_then(Value::as_str).unwrap_or_default();
        if described.is_empty() {
            fault(format!("the parameter `{name}` has no description"));
        } else if is_placeholder(described) {
            fault(format!(
                "the description of the parameter `{name}` is a placeholder: say what the model is to give"
            ));
        }
    }
    faults
}

/// Whether a description waits to be written.
fn is_placeholder(description: &str) -> bool {
    const MARKS: [&str; 6] = ["TODO", "FIXME", "TBD", "XXX", "PLACEHOLDER", "DESCRIPTION"];
    let text = description.trim();
    let is_mark = |mark: &str| {
        let Some(rest) = text.get(..mark.len()).filter(|start| start.eq_ignore_ascii_case(mark)) else {
            return false;
        };
        let after = text.strip_prefix(rest).unwrap_or_default();
        // "Todo lists of the user" is none, "TODO say what it does" is one.
        let is_shouted = rest == mark && after.starts_with(' ');
        is_shouted || after.is_empty() || after.starts_with([':', '.', '…', '!', '?'])
    };
    MARKS.into_iter().any(is_mark)
        || text.chars().all(|c| !c.is_alphanumeric())
        || text.contains("the model chooses it by this sentence")
}

/// What takes something away.
const DESTRUCTIVE: [&str; 11] = [
    "delete",
    "destroy",
    "drop",
    "erase",
    "kill",
    "overwrite",
    "purge",
    "remove",
    "truncate",
    "uninstall",
    "wipe",
];

/// Asks about a tool that only reads, by its effect, and sounds as if it took something away.
fn sounds_destructive(row: &Row) -> Option<String> {
    if row.effect != "read" {
        return None;
    }
    let name = row.name.rsplit('.').next().unwrap_or_default();
    let in_name = name.split('_').find(|word| DESTRUCTIVE.contains(word));
    let word = in_name.or_else(|| destructive_word(&row.description))?;
    Some(format!(
        "{} ({}): it sounds as if it took something away (\"{word}\"), and its effect is `Read`, so that nobody is asked before a call; if it \
         does, write `effect = Effect::Destructive`",
        row.name, row.source
    ))
}

/// The first word of the first sentence that says that something is taken away, unless it says that it is not.
fn destructive_word(description: &str) -> Option<&'static str> {
    const NOT_SO: [&str; 9] = ["not", "never", "cannot", "without", "to", "may", "can", "that", "which"];
    let sentence = description.split(['.', ';', ':']).next().unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&str> =
        sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().find_map(|(index, word)| {
        let known =
            DESTRUCTIVE.iter().find(|known| word == *known || word.strip_suffix('s') == Some(known))?;
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        before.is_none_or(|before| !NOT_SO.contains(before)).then_some(*known)
    })
}

/// Arguments that name a place outside.
const PLACES: [&str; 10] =
    ["url", "urls", "uri", "link", "webhook", "email", "emails", "to", "recipient", "recipients"];
/// What sends something out, or fetches it.
const SENDING: [&str; 9] =
    ["send", "mail", "email", "post", "publish", "upload", "fetch", "download", "notify"];

/// Asks about a tool that takes a place outside, or is named after sending, and does not say what it reads and where it sends.
fn may_send(row: &Row) -> Option<String> {
    if row.flow_declared {
        return None;
    }
    let properties = row.parameters.get("properties").and_then(Value::as_object);
    let is_place = |(name, property): &(&String, &Value)| {
        let format = property.get("format").and_then(Value::as_str);
        PLACES.contains(&name.as_str()) || matches!(format, Some("uri" | "email"))
    };
    let argument =
        properties.into_iter().flatten().find(is_place).map(|(name, _)| format!("it takes `{name}`"));
    let name = row.name.rsplit('.').next().unwrap_or_default();
    let word =
        || name.split('_').find(|word| SENDING.contains(word)).map(|word| format!("its name has \"{word}\""));
    let why = argument.or_else(word)?;
    Some(format!(
        "{} ({}): {why}, and it does not say both what it reads and where it sends; if it sends to somebody else, write `sends = outside`, and \
         `reads = private`, `untrusted` or `nothing` for what its results hold",
        row.name, row.source
    ))
}

#[cfg(test)]
mod tests {
    use registry_core::{
        ToolPolicy, ToolSpec,
        flow::{Reads, Sends},
    };

    use super::*;

    #[test]
    fn u6_a_file_with_one_tool_is_named_after_it_or_its_function() {
        let faults = |tools: &[(&'static str, [&'static str; 2])]| misnamed_files(tools.iter().copied());
        let wrong = ("tools/sea/tides.rs", ["sea.high_tide", "tide"]);
        assert_eq!(
            faults(&[wrong]),
            ["sea.high_tide (tools/sea/tides.rs): the file should be named after its tool: tide.rs"]
        );
        for right in [
            &[("tools/tide.rs", ["high_tide", "tide"])][..],
            &[("tools/sea/high_tide.rs", ["sea.high_tide", "tide"])],
            &[wrong, ("tools/sea/tides.rs", ["sea.low_tide", "low_tide"])],
            &[("/cargo/registry/src/tides-1.0.0/src/lib.rs", ["tides.high_tide", "tide"])],
        ] {
            assert!(faults(right).is_empty(), "{right:?}");
        }
    }

    #[test]
    fn u6_a_tool_that_takes_something_away_sounds_so() {
        for (description, word) in [
            ("Deletes all files of a folder.", Some("delete")),
            ("Find the oldest record and remove it. Returns nothing.", Some("remove")),
            ("Wipe the disk", Some("wipe")),
            ("Find files. Use it before you delete one.", None),
            ("List deleted files.", None),
            ("List files that are safe to delete.", None),
            ("Move a file; does not overwrite anything.", None),
            ("Get the drops of rain in a city.", Some("drop")),
            ("Get the skills of a person.", None),
        ] {
            assert_eq!(destructive_word(description), word, "{description}");
        }
    }

    #[test]
    fn b20_a_tool_that_may_send_and_says_nothing_is_asked_about() {
        let asked = |name: &str, parameters: Value, policy: ToolPolicy| {
            let registry = Registry::builder().without_compiled().build().unwrap();
            let schema = serde_json::json!({"type": "object", "properties": parameters});
            registry.register(ToolSpec::new(name, schema), policy, None).unwrap();
            let context = registry.context(Caller::new("check", Permission::Owner));
            may_send(&listing::rows(&registry, &context, true)[0])
        };
        let (silent, text) = (ToolPolicy::new(), serde_json::json!({"text": {"type": "string"}}));
        let said =
            ToolPolicy { reads: Some(Reads::NOTHING), sends: Some(Sends::Outside), ..ToolPolicy::new() };
        let url = serde_json::json!({"url": {"type": "string"}});
        assert!(asked("look", url.clone(), silent).unwrap().contains("it takes `url`"));
        let address = serde_json::json!({"who": {"type": "string", "format": "email"}});
        assert!(asked("look", address, silent).unwrap().contains("`who`"));
        assert!(asked("tools.send_note", text.clone(), silent).unwrap().contains("\"send\""));
        assert_eq!((asked("look", text, silent), asked("look", url, said)), (None, None));
    }

    #[test]
    fn u6_what_waits_to_be_written_is_no_description() {
        for placeholder in [
            "TODO: say what it does.",
            "TODO say",
            "todo",
            "FIXME",
            "tbd.",
            "…",
            "Placeholder",
            "Description:",
        ] {
            assert!(is_placeholder(placeholder), "{placeholder}");
        }
        for description in [
            "Description of a place.",
            "Todo lists of the user.",
            "Get the user's TODO items.",
            "XXXL sizes",
            "天気",
        ] {
            assert!(!is_placeholder(description), "{description}");
        }
    }
}
