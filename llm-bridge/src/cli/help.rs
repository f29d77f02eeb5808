//! Which options a command's help shows, and the suggestion for a misspelt command.

use clap::{
    ArgMatches, Command, CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use registry_core::nearest;

use super::{Arguments, Flags, call::flags};

/// Options about the server that is started.
const SERVER: [&str; 2] = ["listen", "api_key"];
/// Options about the model server that answers.
const UPSTREAM: [&str; 3] = ["upstream", "upstream_api_key", "model"];
/// Options about what is configured and stored.
const PLACES: [&str; 2] = ["config", "data_dir"];

/// Parses the arguments of this process; exits on an error.
pub(super) fn parse() -> Arguments {
    let mut command = command();
    let suggesting = command.clone();
    let (own, of_tool) = flags::separate(std::env::args_os().collect(), &command);
    let parsed = command.try_get_matches_from_mut(own).and_then(|matches: ArgMatches| {
        let mut arguments =
            Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        let is_variable = |key: &&str| matches.value_source(key) == Some(ValueSource::EnvVariable);
        arguments.flags.by_variable = Flags::KEYS.into_iter().filter(is_variable).collect();
        Ok(arguments)
    });
    let mut arguments = parsed.unwrap_or_else(|error| suggest(error, &suggesting).exit());
    if let Some(super::Command::Call(call)) = &mut arguments.command {
        call.flags = of_tool;
    }
    arguments
}

/// The whole command. Every command accepts every setting; its help shows those that matter for it.
pub(super) fn command() -> Command {
    let mut command = Arguments::command();
    command.build();
    arrange(&mut command, &[]);
    for sub in command.get_subcommands_mut() {
        let hidden: &[&[&str]] = match sub.get_name() {
            "parse" | "man" | "help" => &[&SERVER, &UPSTREAM, &PLACES],
            "chat" | "call" | "try" | "mcp" | "documents" | "tools" => &[&SERVER],
            // The model is an argument.
            "doctor" => &[&SERVER, &["model", "data_dir"]],
            // `--model` is the agent's.
            "launch" => &[&["listen", "api_key", "upstream", "upstream_api_key"], &["data_dir"]],
            "modules" | "mcp-servers" | "connections" | "health" | "user" | "persona" | "key" | "audit"
            | "backup" | "restore" | "trace" => &[&SERVER, &UPSTREAM],
            // Of a command that is not named here nothing is hidden.
            _ => &[],
        };
        arrange(sub, &hidden.concat());
    }
    command
}

/// Puts the settings under a heading of their own, and hides some of them.
fn arrange(command: &mut Command, hidden: &[&str]) {
    *command = std::mem::take(command).mut_args(|argument| {
        let id = argument.get_id().as_str().to_owned();
        let is_setting = [&SERVER[..], &UPSTREAM, &PLACES].concat().contains(&id.as_str());
        let argument = if is_setting { argument.help_heading("Settings") } else { argument };
        if hidden.contains(&id.as_str()) { argument.hide(true) } else { argument }
    });
    command.get_subcommands_mut().for_each(|sub| arrange(sub, hidden));
}

/// The one nearest command for a misspelt one; clap suggests all that are similar.
fn suggest(mut error: clap::Error, command: &Command) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand).cloned()
        && let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand).cloned()
    {
        // clap's suggestion may be of a nested command.
        let is_top = similar.iter().all(|name| command.find_subcommand(name).is_some());
        let names: Vec<&str> = match is_top {
            true => command.get_subcommands().map(Command::get_name).collect(),
            false => similar.iter().map(String::as_str).collect(),
        };
        if let Some(meant) = nearest(&given, names.into_iter()).first() {
            let meant = ContextValue::Strings(vec![(*meant).to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, meant);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(names: &[&str]) -> String {
        let mut command = command();
        let mut found = &mut command;
        for name in names {
            found = found.find_subcommand_mut(name).unwrap();
        }
        found.render_long_help().to_string()
    }

    #[test]
    fn u12_help_shows_the_options_that_mean_something() {
        for (names, shown, hidden) in [
            (&[][..], &["--listen", "--upstream", "--config"][..], &[][..]),
            (&["serve"], &["--listen", "--api-key", "--upstream"], &[]),
            (&["chat"], &["--upstream", "--model", "--data-dir"], &["--listen", "--api-key <"]),
            (&["user", "list"], &["--data-dir", "--config"], &["--listen", "--upstream", "--model"]),
            (&["audit"], &["--data-dir", "--user <ID>"], &["--listen", "--upstream"]),
            (&["tools", "list"], &["--level <LEVEL>"], &["--listen", "--user"]),
            (&["doctor"], &["--write", "--json", "--upstream"], &["--listen", "--model", "--data-dir"]),
            (&["call"], &["--level <LEVEL>"], &["--listen", "--user"]),
            (&["parse"], &["--jsonl"], &["--listen", "--upstream", "--data-dir"]),
        ] {
            let help = help(names);
            assert!(shown.iter().all(|option| help.contains(option)), "{names:?}: {help}");
            assert!(!hidden.iter().any(|option| help.contains(option)), "{names:?}: {help}");
        }
        // Hidden options still work.
        let matches = command().try_get_matches_from(["toolrack", "user", "list", "--listen", ":1"]);
        assert_eq!(
            Arguments::from_arg_matches(&matches.unwrap()).unwrap().flags.listen.as_deref(),
            Some(":1")
        );
    }

    /// The commands that have none below them, such as `user add`.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let below = command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set());
        let before = found.len();
        for one in below {
            leaves(one, format!("{path} {}", one.get_name()).trim_start(), found);
        }
        if found.len() == before {
            found.push(path.to_owned());
        }
    }

    #[test]
    fn u29_each_command_is_in_the_console_or_it_is_said_why_not() {
        let page = include_str!("../../../docs/console.md");
        let (_, table) = page.split_once("## Beside the command line").unwrap();
        let says = |command: &str| {
            [format!("`{command}`"), format!("`{command} ")].map(|text| table.contains(&text))
        };
        let mut all = Vec::new();
        leaves(&command(), "", &mut all);
        assert!(all.iter().any(|one| one == "user add") && all.len() > 40, "{all:?}");
        all.retain(|one| {
            let group = one.split_once(' ').map_or(one.as_str(), |(group, _)| group);
            let [named, has_parts] = says(group);
            // A group that is named alone stands for all of its commands, and one with parts for the list that it gives.
            !says(one).contains(&true) && !(named && (!has_parts || one.ends_with(" list")))
        });
        assert!(all.is_empty(), "docs/console.md does not name {all:?}");
    }

    #[test]
    fn u14_a_misspelt_command_gets_the_nearest() {
        for (given, meant) in [("serv", "serve"), ("tool", "tools"), ("usr", "user")] {
            let error = command().try_get_matches_from(["toolrack", given]).unwrap_err();
            let reported = suggest(error, &command()).to_string();
            assert!(
                reported.contains(&format!("'{meant}'")) && !reported.contains("mcp-servers"),
                "{reported}"
            );
        }
    }
}
