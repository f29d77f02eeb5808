//! What a module answers to a call, and what it is to the registry.

use std::fmt::Display;

use jiff::Timestamp;
use registry_core::{ToolError, ToolResult, text::cut};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::client::Fault;
use crate::values::Values;

/// How many side effects are kept of one call, and how much of each and of the notes, in bytes.
const MAX_EFFECTS: usize = 100;
const MAX_EFFECT: usize = 512;
const MAX_NOTES: usize = 16 * 1024;
/// How long its error is, and its message, in bytes, and how many names of other tools it proposes.
const MAX_ERROR: usize = 4096;
const MAX_MESSAGE: usize = 16 * 1024;
const MAX_NEAREST: usize = 8;

/// The body of the answer to `POST /execute`. Of what it may have beside this nothing is read.
#[derive(Debug, Deserialize)]
struct Reply {
    success: bool,
    #[serde(default)]
    result: Value,
    content: Option<Value>,
    error: Option<String>,
    message: Option<String>,
    side_effects: Option<Vec<String>>,
    audit: Option<Map<String, Value>>,
    ends_turn: Option<bool>,
    retryable: Option<bool>,
    retry_at: Option<Timestamp>,
    nearest: Option<Vec<String>>,
}

/// Whether a text that came with another status than 200 is the reply all the same: a Toolrack refuses a call with a status that
/// says why, and the reply says more.
pub(super) fn is_refusal(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        #[serde(rename = "tool_name")]
        _tool_name: String,
        success: bool,
        #[serde(rename = "error")]
        _error: String,
    }
    serde_json::from_str(text).is_ok_and(|refusal: Refusal| !refusal.success)
}

/// Reads the answer, beside the runtime: the module chooses how large it is.
pub(super) async fn read(json: Vec<u8>) -> Result<Result<ToolResult, ToolError>, Fault> {
    let stopped = |_| Fault::Content("this server is being stopped".to_owned());
    tokio::task::spawn_blocking(move || decoded(&json)).await.map_err(stopped)?
}

fn decoded(json: &[u8]) -> Result<Result<ToolResult, ToolError>, Fault> {
    let unreadable =
        |fault: &dyn Display| Fault::Content(format!("the module's answer cannot be read: {fault}"));
    Values::default().count(json).map_err(|fault| unreadable(&fault))?;
    let reply: Reply = serde_json::from_slice(json).map_err(|fault| unreadable(&fault))?;
    Ok(reply.into_result())
}

impl Reply {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        let message = self.message.map(|message| cut(message, MAX_MESSAGE));
        let error = match self.error {
            Some(error) if !self.success => error,
            None if !self.success && message.is_none() => {
                "the module says that the call failed, and not why".to_owned()
            }
            _ => {
                return Ok(ToolResult {
                    success: self.success,
                    value: self.result,
                    // A module of another making may call something else so.
                    content: self
                        .content
                        .and_then(|content| serde_json::from_value(content).ok())
                        .unwrap_or_default(),
                    ends_turn: self.ends_turn.unwrap_or_default(),
                    message,
                    side_effects: bounded_list(self.side_effects.unwrap_or_default()),
                    audit: bounded_notes(self.audit.unwrap_or_default()),
                });
            }
        };
        let nearest = self.nearest.unwrap_or_default().into_iter().take(MAX_NEAREST);
        let nearest = nearest.map(|name| cut(name, MAX_EFFECT)).collect();
        let mut error = ToolError::failed(cut(error, MAX_ERROR)).with_nearest(nearest);
        if self.retryable == Some(true) {
            error = error.retryable();
        }
        Err(match self.retry_at {
            Some(at) => error.with_retry_at(at),
            None => error,
        })
    }
}

/// The first side effects, each with its beginning, so that no module fills the audit.
fn bounded_list(effects: Vec<String>) -> Vec<String> {
    effects.into_iter().take(MAX_EFFECTS).map(|effect| cut(effect, MAX_EFFECT)).collect()
}

/// The notes for the audit, or that there were too many.
fn bounded_notes(notes: Map<String, Value>) -> Map<String, Value> {
    match Value::from(notes.clone()).to_string().len() {
        ..=MAX_NOTES => notes,
        length => Map::from_iter([("left_out".to_owned(), format!("{length} bytes of notes").into())]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::values::MAX_VALUES;

    fn result(reply: Value) -> Result<ToolResult, ToolError> {
        decoded(reply.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn m8_a_reply_becomes_a_result() {
        let full = json!({"tool_name": "m.f", "success": true, "result": {"a": 1}, "error": null, "message": "Done.",
            "side_effects": ["created:a"], "audit": {"rows": 3}, "more": "is let through"});
        let expected = ToolResult::new(json!({"a": 1})).with_message("Done.").with_side_effect("created:a");
        assert_eq!(result(full).unwrap(), expected.with_audit("rows", 3));
        let parts =
            json!([{"type": "table", "columns": ["a"], "rows": [[1]]}, {"type": "markdown", "text": "*a*"}]);
        let whole =
            result(json!({"success": true, "result": null, "content": parts, "ends_turn": true})).unwrap();
        let table = registry_core::Table::new(["a"]).row([1]).into();
        let expected =
            ToolResult::parts([table, registry_core::Content::from(registry_core::Markdown::new("*a*"))]);
        assert_eq!(whole, expected.ends_turn());
        let bare = result(json!({"tool_name": "m.f", "success": true})).unwrap();
        assert_eq!(bare, ToolResult::new(Value::Null));
        let nulls =
            json!({"success": true, "result": "x", "message": null, "side_effects": null, "audit": null});
        assert_eq!(result(nulls).unwrap(), ToolResult::new("x"));
        let blocked = result(json!({"success": false, "message": "Not at night."})).unwrap();
        assert_eq!(blocked, ToolResult::unsuccessful("Not at night."));
    }

    #[test]
    fn m8_what_goes_to_the_audit_is_bounded() {
        let flood = json!({"success": true, "side_effects": vec!["ü".repeat(1000); 1000], "audit": {"x": "y".repeat(1 << 20)}});
        let result = result(flood).unwrap();
        assert_eq!(result.side_effects, vec![format!("{}…", "ü".repeat(256)); MAX_EFFECTS]);
        assert_eq!(Value::from(result.audit), json!({"left_out": "1048584 bytes of notes"}));
    }

    #[test]
    fn m8_what_a_module_says_of_a_call_is_bounded() {
        let long = "ü".repeat(1 << 20);
        let failed = json!({"success": false, "error": long, "nearest": vec!["ü".repeat(1000); 1000]});
        let failed = result(failed).unwrap_err();
        assert_eq!(failed.message().len(), MAX_ERROR + 3);
        assert_eq!(failed.nearest(), vec![format!("{}…", "ü".repeat(256)); MAX_NEAREST]);
        for success in [true, false] {
            let said = result(json!({"success": success, "message": long})).unwrap().message.unwrap();
            assert_eq!(said.len(), MAX_MESSAGE + 3);
        }
    }

    #[test]
    fn a35_a_reply_has_so_many_values_and_no_more() {
        let reply =
            |many: usize| format!(r#"{{"success": true, "result": [{}]}}"#, vec!["1"; many].join(","));
        // An object of two fields, a list, and what is in it.
        assert!(decoded(reply(MAX_VALUES - 2).as_bytes()).unwrap().is_ok());
        let error = decoded(reply(MAX_VALUES - 1).as_bytes()).unwrap_err().error();
        assert!(error.message().contains("more than 500000 values"), "{error}");
    }

    #[test]
    fn m8_a_reply_becomes_an_error() {
        let plain = result(json!({"success": false, "error": "No such file."})).unwrap_err();
        assert_eq!((plain.message(), plain.is_retryable()), ("No such file.", false));
        let again = json!({"success": false, "error": "Busy.", "retryable": true, "retry_at": "2026-03-01T12:00:00Z"});
        let again = result(again).unwrap_err();
        assert!(again.is_retryable() && again.retry_at().is_some());
        let silent = result(json!({"success": false})).unwrap_err();
        assert!(silent.message().contains("not why"));
    }

    #[test]
    fn m8_a_reply_under_another_status_is_distinguished_from_a_page() {
        let refusal = json!({"tool_name": "m.f", "success": false, "error": "no", "audit": {}}).to_string();
        assert!(is_refusal(&refusal));
        for text in [
            "",
            "Not Found",
            r#"{"detail":"Not Found"}"#,
            r#"{"success":false,"error":"x"}"#,
            r#"{"tool_name":"f","success":true,"error":"x"}"#,
            &refusal[..20],
        ] {
            assert!(!is_refusal(text), "{text}");
        }
    }

    #[test]
    fn m8_what_is_no_reply_is_a_fault() {
        for json in ["", "<html>", "[]", "{}", r#"{"success": "yes"}"#, r#"{"success": true"#] {
            let fault = decoded(json.as_bytes()).unwrap_err();
            assert!(!fault.is_outage(), "{json}");
            let error = fault.error();
            assert!(error.message().starts_with("Tool execution error: the module's answer"), "{error}");
            assert!(!error.is_retryable());
        }
    }
}
