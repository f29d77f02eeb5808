//! The commands of the terminal chat, which begin with `/` and are not sent to the model.

use registry_core::{Caller, Registry, nearest};

use crate::listing;

const HELP: &str = "\
/help   show this help
/tools  list the tools that the model can call
/quit   end the chat
Ctrl-C stops an answer; at the prompt it ends the chat.";

/// The reply to a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Say(String),
    Quit,
}

/// The reply to a command; `None` for a question. A path such as `/etc/hosts` begins a question.
pub(super) fn reply(line: &str, registry: &Registry, caller: &Caller) -> Option<Reply> {
    let command = line.trim().strip_prefix('/')?;
    let name = command.split_whitespace().next().unwrap_or_default();
    if name.contains('/') {
        return None;
    }
    Some(match name {
        "help" => Reply::Say(HELP.to_owned()),
        "tools" => Reply::Say(tools(registry, caller)),
        "quit" | "exit" => Reply::Quit,
        other => Reply::Say(match nearest(other, ["help", "tools", "quit"].into_iter()).first() {
            Some(meant) => format!("There is no command /{other}; did you mean /{meant}?"),
            None => format!("There is no command /{other}; /help lists the commands."),
        }),
    })
}

fn tools(registry: &Registry, caller: &Caller) -> String {
    let rows = listing::rows(registry, &registry.context(caller.clone()), false);
    let ready = rows.iter().filter(|row| row.enabled);
    let lines = ready.map(|row| {
        let summary = row.description.lines().next().unwrap_or_default();
        format!("{}: {}", row.name, summary.split_once(". ").map_or(summary, |(first, _)| first))
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        "No tool is ready; see `toolrack tools list`.".to_owned()
    } else {
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Permission, ToolPolicy, ToolSpec};

    use super::*;

    #[test]
    fn u15_commands_are_answered_here() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let caller = Caller::new("ada", Permission::User);
        let reported = |line: &str| match reply(line, &registry, &caller) {
            Some(Reply::Say(text)) => text,
            other => format!("{other:?}"),
        };
        assert!(reported("/help").contains("/tools") && reported(" /help ").contains("/quit"));
        assert!(reported("/tools").contains("No tool"), "{}", reported("/tools"));
        let spec = ToolSpec {
            description: Some("Add numbers. Slowly.".to_owned()),
            ..ToolSpec::new("add", serde_json::json!({}))
        };
        registry.register(spec, ToolPolicy::new(), None).unwrap();
        let listed = reported("/tools");
        assert!(listed.starts_with("add: Add numbers") || listed.contains("No tool"), "{listed}");
        assert_eq!(reply("/quit", &registry, &caller), Some(Reply::Quit));
        assert!(reported("/tool").contains("did you mean /tools?"), "{}", reported("/tool"));
        assert!(reported("/xyzzy").contains("/help lists"), "{}", reported("/xyzzy"));
        for question in ["hello", "/etc/hosts: what is it?", "what does /help do?"] {
            assert_eq!(reply(question, &registry, &caller), None, "{question}");
        }
    }
}
