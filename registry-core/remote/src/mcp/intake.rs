//! From what a server lists to the tools that the registry is offered: names, rules, and what is not taken.

use std::collections::{BTreeMap, BTreeSet};

use registry_core::{
    Effect, ToolPolicy, ToolSpec,
    flow::Sends,
    schema::{as_object_schema, check_input, without_unusable_patterns},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    McpServerSettings,
    listing::{Annotations, Listed, Listing},
};
use crate::{
    definition::{MAX_TOOL_NAME, MAX_TOOLS, is_legal_name, is_name_character},
    pin::Pin,
    settings::{ALL_OTHERS, said_of},
    source::{AcceptedTool, Intake},
    tool::whole_timeout,
};

/// What is taken of a list.
pub(super) fn take(server: &str, listing: Listing, settings: &McpServerSettings) -> Intake {
    let mut intake = Intake::default();
    if let Some(message) = listing.cut {
        intake.fault("*", message, false);
    }
    let known: BTreeSet<&str> = listing.tools.iter().map(|(name, _)| name.as_str()).collect();
    for (list, names) in [
        ("allow", settings.allow.iter().flatten().collect::<Vec<_>>()),
        ("deny", settings.deny.iter().collect()),
        ("effects", settings.effects.keys().collect()),
        ("reads", settings.reads.keys().collect()),
        ("sends", settings.sends.keys().collect()),
    ] {
        let is_name = |name: &&String| !known.contains(name.as_str()) && *name != ALL_OTHERS;
        for name in names.into_iter().filter(is_name) {
            intake.fault(name, format!("`{list}` names it, and the server has no such tool"), false);
        }
    }
    let is_wanted = |name: &str| {
        settings.allow.as_ref().is_none_or(|allow| allow.contains(name)) && !settings.deny.contains(name)
    };
    let wanted = listing.tools.into_iter().filter(|(name, _)| is_wanted(name));
    // Those with legal names first, so that none of them is renamed for another's sake.
    let (legal, other): (Vec<_>, Vec<_>) = wanted.partition(|(name, _)| is_legal(server, name));
    for (wire_name, listed) in legal.into_iter().chain(other) {
        if intake.tools.len() == MAX_TOOLS {
            let message = format!("it has more than {MAX_TOOLS} tools; name those you want in `allow`");
            intake.fault("*", message, false);
            break;
        }
        let mut notes = Vec::new();
        let taken = listed.and_then(|listed| {
            let name = local_name(server, &wire_name, &intake.tools)?;
            let (policy, pin) = (policy(&listed, settings), pin(&listed));
            let spec = spec(name, listed, &mut notes)?;
            Ok(AcceptedTool { spec, policy, wire_name: wire_name.clone(), hops: 0, pin })
        });
        if taken.is_ok() {
            notes.into_iter().for_each(|note| intake.fault(&wire_name, note, true));
        }
        intake.add(&wire_name, taken);
    }
    intake
}

fn is_legal(server: &str, name: &str) -> bool {
    server.len() + 1 + name.len() <= MAX_TOOL_NAME && is_legal_name(name)
}

/// The name of a tool here: the server's and its own, with `_` for what no name can have, and a number where another has it
/// then.
fn local_name(
    server: &str,
    wire_name: &str,
    taken: &BTreeMap<String, AcceptedTool>,
) -> Result<String, String> {
    if wire_name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let bare = if is_legal(server, wire_name) { wire_name.to_owned() } else { made_legal(server, wire_name) };
    let name = format!("{server}.{bare}");
    match taken.get(&name) {
        None => Ok(name),
        Some(other) if other.wire_name == wire_name => {
            Err("the server has two tools of that name; the first stays".to_owned())
        }
        Some(_) => (2..=MAX_TOOLS)
            .map(|number| format!("{name}_{number}"))
            .find(|name| !taken.contains_key(name))
            .ok_or_else(|| "too many tools have that name here".to_owned()),
    }
}

fn made_legal(server: &str, wire_name: &str) -> String {
    let legal: String = wire_name.chars().map(|c| if is_name_character(c) { c } else { '_' }).collect();
    // Room for the number.
    let room = MAX_TOOL_NAME.saturating_sub(server.len() + 1 + "_1000".len());
    if legal.len() <= room {
        return legal;
    }
    // All characters are ASCII now. What the end said is in the hash.
    let hash: String = format!("{:x}", Sha256::digest(wire_name)).chars().take(8).collect();
    let beginning: String = legal.chars().take(room.saturating_sub(hash.len() + 1)).collect();
    format!("{beginning}_{hash}")
}

/// Of what the server says, not of what the operator makes of it: other settings are no change.
fn pin(listed: &Listed) -> Pin {
    let Annotations { title, read_only_hint, destructive_hint, idempotent_hint, open_world_hint } =
        listed.annotations.clone().unwrap_or_default();
    let mut hints = vec![read_only_hint, destructive_hint, idempotent_hint];
    // True is what counts for a tool that does not say.
    hints.extend(open_world_hint.filter(|open| !open).map(Some));
    Pin::new(
        &json!([listed.title, title, listed.description]),
        &json!([listed.input_schema, listed.output_schema]),
        &json!(hints),
    )
    .with_named_rules(&json!({
        "readOnlyHint": read_only_hint,
        "destructiveHint": destructive_hint,
        "idempotentHint": idempotent_hint,
        "openWorldHint": open_world_hint,
    }))
}

/// What is offered of a tool. `notes` gets what of its definition is taken otherwise than it says.
fn spec(name: String, listed: Listed, notes: &mut Vec<String>) -> Result<ToolSpec, String> {
    if listed.execution.get("taskSupport").and_then(Value::as_str) == Some("required") {
        return Err("it runs as a task alone, and tasks are not supported".to_owned());
    }
    let mut input = listed.input_schema;
    if as_object_schema(&mut input) {
        notes.push("its input schema lacks what makes it that of an object, which was added".to_owned());
    }
    if let Err(fault) = check_input(&input) {
        // The server checks its arguments by itself.
        let places = without_unusable_patterns(&mut input).join("`, `");
        if places.is_empty() {
            return Err(fault);
        }
        check_input(&input)?;
        notes.push(format!("its patterns at `{places}` are not checked here, and left out of its schema"));
    }
    Ok(ToolSpec {
        title: listed.title.or_else(|| listed.annotations.and_then(|annotations| annotations.title)),
        description: listed.description,
        output_schema: listed.output_schema.unwrap_or_default(),
        ..ToolSpec::new(name, input)
    })
}

/// The rules for a tool. A hint is believed where it asks for more care; where it asks for less, only if the operator trusts the
/// server. The protocol calls every tool destructive that says nothing; so would most tools be that only read, so it is write.
fn policy(listed: &Listed, settings: &McpServerSettings) -> ToolPolicy {
    let hints = listed.annotations.clone().unwrap_or_default();
    let (trusted, reads) = (settings.trust_annotations, hints.read_only_hint == Some(true));
    let hinted = match hints.destructive_hint {
        // It means nothing for a tool that reads; one that says both is not clear, and gets more care unless it is trusted.
        Some(true) if !(trusted && reads) => Effect::Destructive,
        _ if trusted && reads => Effect::Read,
        _ => Effect::Write,
    };
    let policy = ToolPolicy {
        permission: settings.permission,
        daily_limit: settings.daily_limit,
        requires_gate: settings.requires_gate,
        effect: settings.effects.get(&listed.name).copied().unwrap_or(hinted),
        idempotent: trusted && hints.idempotent_hint == Some(true),
        reads: said_of(&settings.reads, &listed.name),
        sends: said_of(&settings.sends, &listed.name)
            .or_else(|| (trusted && hints.open_world_hint == Some(false)).then_some(Sends::Nothing)),
        ..ToolPolicy::new()
    };
    ToolPolicy { timeout: whole_timeout(&policy, settings.timeout), ..policy }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
