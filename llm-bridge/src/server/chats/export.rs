//! `GET /api/chats/{id}/export`: a chat as a file.

use std::{collections::HashMap, fmt::Write};

use axum::http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;

use super::{
    Access, NOT_FOUND, Whole,
    message::{By, CallPart, Part, Shown, Status},
    whole,
};
use crate::server::{
    calls::files::served,
    openapi::Operation,
    requests::{api_error::ApiError, body::decode, name::Name, query::QueryParameters},
};

/// The form of the file.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Markdown,
    Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    #[serde(default)]
    format: Format,
}

pub(super) fn operation() -> Operation {
    Operation::new(Method::GET, "Chats", "export_chat", "A chat as a file")
        .details("As Markdown the branch that is shown, as JSON all of it.")
        .path("id", "The chat's id.")
        .query("format", "`markdown`, by default, or `json`.")
        .answers_with(200, "text/markdown", "The file.")
        .answers_with(200, "application/json", "")
        .refuses(400, "`format` is neither (`invalid_request_error`).")
        .refuses(404, NOT_FOUND)
}

pub(super) async fn export(
    access: Access,
    Name(id): Name,
    QueryParameters(Parameters { format }): QueryParameters<Parameters>,
) -> Result<([(HeaderName, HeaderValue); 7], String), ApiError> {
    let whole = whole(&access, &id).await?;
    let title = match whole.chat.head.title.as_str() {
        "" => "chat".to_owned(),
        title => title.replace(['/', '\\'], "-"),
    };
    let head = match format {
        Format::Markdown => served(&format!("{title}.md"), "text/markdown; charset=utf-8"),
        Format::Json => served(&format!("{title}.json"), "application/json"),
    };
    let size = whole.bytes;
    let write = move || match format {
        Format::Markdown => Ok(markdown(&whole)),
        Format::Json => serde_json::to_string(&whole),
    };
    let text = decode(access.identity.sender(), size, write).await?;
    let text = text.map_err(|fault| ApiError::internal(fault.to_string()))?;
    access.identity.hold(text.len())?;
    Ok((head, text))
}

fn markdown(whole: &Whole) -> String {
    let mut path: Vec<&Shown> = Vec::new();
    let by_id: HashMap<&str, &Shown> =
        whole.messages.iter().map(|message| (message.id.as_str(), message)).collect();
    let find = |id: Option<&String>| id.and_then(|id| by_id.get(id.as_str()).copied());
    let mut next = find(whole.chat.leaf.as_ref());
    while let Some(message) = next.filter(|_| path.len() < whole.messages.len()) {
        path.push(message);
        next = find(message.parent.as_ref());
    }
    let mut text = format!("# {}\n", whole.chat.head.title);
    for message in path.into_iter().rev() {
        let by = match (message.role, &message.model) {
            (By::User, _) => "User".to_owned(),
            (By::Assistant, Some(model)) => format!("Assistant ({model})"),
            (By::Assistant, None) => "Assistant".to_owned(),
        };
        let _ = write!(text, "\n## {by}, {}\n", message.created_at.strftime("%Y-%m-%d %H:%M:%S UTC"));
        message.parts.iter().for_each(|part| write_part(&mut text, part));
        let ending = match message.status {
            Status::Done if message.finish_reason.as_deref() == Some("length") => {
                Some("cut off at the length limit")
            }
            Status::Done | Status::Running => None,
            Status::Stopped => Some("stopped"),
            Status::CutOff => Some("cut off"),
            Status::Failed => message.error.as_ref().map(|error| error.message.as_str()),
        };
        if let Some(ending) = ending {
            let _ = write!(text, "\n*[{ending}]*\n");
        }
    }
    text
}

fn write_part(text: &mut String, part: &Part) {
    let quoted = |words: &str| words.trim().lines().map(|line| format!("> {line}\n")).collect::<String>();
    let written = match part {
        Part::Text { text: words } => write!(text, "\n{}\n", words.trim()),
        Part::Reasoning { text: words, .. } => {
            write!(text, "\n<details><summary>Reasoning</summary>\n\n{}\n</details>\n", quoted(words))
        }
        Part::Notice { text: words } => write!(text, "\n*{}*\n", words.trim()),
        Part::Call(call) => {
            write_call(text, call);
            Ok(())
        }
        Part::Image(_) => write!(text, "\n*[picture]*\n"),
        Part::Audio(_) => write!(text, "\n*[sound]*\n"),
        Part::Video(_) => write!(text, "\n*[video]*\n"),
        Part::File(_) => write!(text, "\n*[file]*\n"),
    };
    // A text takes all that is written.
    let _ = written;
}

fn write_call(text: &mut String, call: &CallPart) {
    let result = match (&call.error, &call.result) {
        (Some(error), _) => error.clone(),
        (None, Some(serde_json::Value::String(text))) => text.clone(),
        (None, Some(result)) => serde_json::to_string_pretty(result).unwrap_or_default(),
        (None, None) => String::new(),
    };
    let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    let _ = write!(text, "\n<details><summary>Call of {}</summary>\n\n{}", call.name, fenced(&arguments));
    if !result.is_empty() {
        let _ = write!(text, "\n{}", fenced(&result));
    }
    text.push_str("\n</details>\n");
}

/// A block of code, with a fence that does not occur in it.
fn fenced(code: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in code.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{code}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::fenced;

    #[test]
    fn b17_a_fence_is_longer_than_those_in_the_code() {
        for (code, fence) in [("ls", 3), ("a ``` b", 4), ("`````\n```", 6)] {
            let fence = "`".repeat(fence);
            assert_eq!(fenced(code), format!("{fence}\n{code}\n{fence}\n"));
        }
        // However long it is, it is read once.
        assert_eq!(fenced(&"`".repeat(4 << 20)).len(), 3 * (4 << 20) + 2 + 3);
    }
}
