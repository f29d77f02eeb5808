//! `toolrack config`: the settings with where each comes from.

use std::process::ExitCode;

use serde_json::Value;

use super::{
    Settings,
    out::{print_line, table},
    terminal::one_line,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only settings whose key has this text, such as `limits`
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

pub(super) fn run(arguments: &Arguments, settings: &Settings) -> Result<ExitCode, String> {
    let mut all = settings.configured();
    if let Some(text) = &arguments.text {
        all.retain(|setting| setting.key.contains(text.as_str()));
    }
    if arguments.json {
        print_line(serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = table(["setting", "value", "from"]);
    for setting in all {
        let value = match &setting.value {
            _ if setting.hidden => "(hidden)".to_owned(),
            Value::Null => "-".to_owned(),
            Value::String(text) => one_line(text),
            value => one_line(&value.to_string()),
        };
        let from: &'static str = setting.from.into();
        rows.add_row([one_line(&setting.key), value, setting.place.unwrap_or_else(|| from.to_owned())]);
    }
    print_line(rows)?;
    Ok(ExitCode::SUCCESS)
}
