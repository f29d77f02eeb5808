//! The field `toolrack` of a request, which every front reads.

use crate::{BadRequest, json::Object, number::whole_number_or_null};

/// The maximum length of a chat's id, in bytes.
const MAX_CHAT_ID: usize = 256;
/// The maximum length of the knowledge base context, in bytes; each tool and each gate gets it.
const MAX_KB_CONTEXT: usize = 1 << 20;

/// The maximum number of names in each of its lists.
const MAX_NAMES: usize = 1000;

/// The field `toolrack` of a request.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ChatExtension")]
pub struct Extension {
    /// Only these tools of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// One of the user's personas, in place of the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Only these modules of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_modules: Option<Vec<String>>,
    /// The chat this belongs to.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Context from a knowledge base for this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kb_context: Option<String>,
    /// The model's own confidence, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How long a call may wait for a person's approval, in seconds. By default, in a stream until the approval
    /// expires, otherwise not at all; the answer then says that the call has to be made again.
    #[serde(deserialize_with = "whole_number_or_null", skip_serializing_if = "Option::is_none")]
    pub approval_wait_seconds: Option<u64>,
    /// How long a call may wait for the user's answer to a question of its tool, in seconds, for clients that show questions. By
    /// default not at all: the turn ends with the question, and the next message may answer it. Tools that cannot be run again from their
    /// start wait as for an approval.
    #[serde(deserialize_with = "whole_number_or_null", skip_serializing_if = "Option::is_none")]
    pub question_wait_seconds: Option<u64>,
    /// Whether a call is reported while the model writes it. By default it is reported once it is complete.
    #[schemars(description = "Whether a call is reported while the model writes it. Requires `stream`.")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deltas: bool,
}

impl Extension {
    /// Takes the field `toolrack` out of a request's body.
    ///
    /// # Errors
    /// If it is not in its documented form.
    pub fn take(body: &mut Object<'_>, stream: bool) -> Result<Self, BadRequest> {
        let Some(object) = body.object("toolrack")? else { return Ok(Self::default()) };
        let read: Self = serde_json::from_str(object.source())
            .map_err(|error| BadRequest::new("toolrack", format!("`toolrack` is not understood: {error}")))?;
        read.check(stream).map_err(|(param, message)| BadRequest::new(param, message))?;
        Ok(read)
    }

    /// Checks what the types do not say: the field that is wrong, and why.
    pub(crate) fn check(&self, stream: bool) -> Result<(), (&'static str, String)> {
        if self.deltas && !stream {
            let message = "`toolrack.deltas` goes with `\"stream\": true` only";
            return Err(("toolrack.deltas", message.to_owned()));
        }
        let lists = [
            ("toolrack.allowed_tools", &self.allowed_tools),
            ("toolrack.allowed_modules", &self.allowed_modules),
        ];
        for (param, names) in lists {
            if names.as_ref().is_some_and(|names| names.len() > MAX_NAMES) {
                return Err((param, format!("`{param}` has more than {MAX_NAMES} names")));
            }
        }
        if self.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
            let message = "`toolrack.confidence` has to be a number from 0 to 1";
            return Err(("toolrack.confidence", message.to_owned()));
        }
        if self.chat_id.as_ref().is_some_and(|id| !is_chat_id(id)) {
            let message = format!(
                "`toolrack.chat_id` has to be a text of 1 to {MAX_CHAT_ID} bytes, without control characters"
            );
            return Err(("toolrack.chat_id", message));
        }
        if self.kb_context.as_ref().is_some_and(|context| context.len() > MAX_KB_CONTEXT) {
            let message = format!(
                "`toolrack.kb_context` is over {} MiB; send what this turn needs",
                MAX_KB_CONTEXT >> 20
            );
            return Err(("toolrack.kb_context", message));
        }
        Ok(())
    }
}

fn is_chat_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_CHAT_ID && !id.chars().any(char::is_control)
}
