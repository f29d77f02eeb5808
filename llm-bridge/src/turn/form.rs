//! Answers of a given form, also from servers that do not keep a model to one.

use std::time::Duration;

use registry_core::schema::BoundedValidator;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolrack_apis::{Failure, FinishReason, Request, ResponseFormat, TurnEvent};

use super::{
    offer::Round,
    prompt,
    reader::Reader,
    run::{End, Run},
    runner,
};
use crate::upstream::UpstreamError;

/// How many answers without the form are borne before the turn fails.
const MOST_MISFITS: usize = 3;
/// How much of such an answer the model sees again, in characters.
const LAST_WORDS: usize = 1000;
/// How long an answer may take to be validated; schemas are as involved as an outsider likes.
const CHECK_TIME: Duration = Duration::from_secs(2);

/// What has come of asking for the form.
#[derive(Debug, Default)]
pub(super) struct Forming {
    /// The refusal of the server, which is asked for the form in the prompt since then.
    refusal: Option<UpstreamError>,
    /// How many answers did not fit, the last of them, and what was wrong with it.
    misfits: usize,
    last_words: String,
    fault: String,
}

/// Why an answer does not do.
enum Misfit {
    /// The answer does not fit.
    Answer(String),
    /// The schema is none.
    Schema,
}

impl Forming {
    pub(super) fn is_in_prompt(&self) -> bool {
        self.refusal.is_some() || self.misfits > 0
    }

    /// The request with the form in the prompt, if it is asked for there.
    pub(super) fn in_prompt(&self, request: &Request) -> Option<Request> {
        if !self.is_in_prompt() {
            return None;
        }
        let mut request = request.clone();
        let format = request.format.take()?;
        prompt::describe_form(&mut request.messages, &format);
        if self.misfits > 0 {
            prompt::remind_of_form(&mut request.messages, &self.last_words, &self.fault);
        }
        Some(request)
    }
}

impl Run {
    /// Whether the answer gets its form now, which leaves no room for calls.
    pub(super) fn asks_for_form(&self) -> bool {
        self.request.format.is_some() && (self.offer.has_server_tools() || !self.offer.has_tools())
    }

    /// Asks until there is an answer of the form. Where nothing is known to keep the model to it, the answer is held back until it is checked.
    pub(super) async fn ask_until_formed(&mut self, round: Round) -> Result<Reader, End> {
        self.forming = Some(Forming::default());
        let reader = loop {
            let mut reader = self.ask_until_read(round).await?;
            // What was cut off would be again.
            if !self.holds_answer() || !reader.calls.is_empty() || reader.finish == Some(FinishReason::Length)
            {
                break reader;
            }
            let Some(format) = self.request.format.clone() else { break reader };
            match fitting(format, std::mem::take(&mut reader.text)).await {
                (text, Ok(())) => {
                    reader.text = text;
                    break reader;
                }
                (text, Err(misfit)) => {
                    reader.text = text;
                    if self.does_not_fit(&mut reader, misfit)? {
                        break reader;
                    }
                }
            }
        };
        if self.holds_answer() {
            self.send_all(&mut vec![TurnEvent::Text(reader.text.clone())]).await?;
        }
        self.forming = None;
        Ok(reader)
    }

    /// Takes note of an answer that does not fit; whether it has to do.
    fn does_not_fit(&mut self, reader: &mut Reader, misfit: Misfit) -> Result<bool, End> {
        self.count_usage(reader);
        let Some(forming) = &mut self.forming else { return Ok(true) };
        let fault = match (misfit, forming.refusal.take()) {
            // The server was right.
            (Misfit::Schema, Some(refusal)) => return Err(End::Upstream(refusal)),
            (Misfit::Schema, None) => return Ok(true),
            (Misfit::Answer(fault), refusal) => {
                forming.refusal = refusal;
                fault
            }
        };
        forming.misfits += 1;
        tracing::warn!(
            misfits = forming.misfits,
            fault,
            "an answer does not have the form that was asked for"
        );
        forming.last_words = runner::shorten(std::mem::take(&mut reader.text), LAST_WORDS);
        forming.fault = fault;
        if forming.misfits < MOST_MISFITS {
            return Ok(false);
        }
        let failure = Failure::of_upstream(format!(
            "the answer has to have a given form, and {MOST_MISFITS} answers had not: {}; the last was: {}",
            forming.fault,
            runner::shorten(std::mem::take(&mut forming.last_words), 200)
        ));
        // Asked again by the client the model would be asked as often once more.
        Err(End::Upstream(UpstreamError::Failed(Box::new(failure.not_again()))))
    }

    /// Whether the answer is shown when it has been checked.
    pub(super) fn holds_answer(&self) -> bool {
        // Without tools a server that nobody knows is left to itself: its client knows it.
        let is_unknown = || self.offer.has_server_tools() && self.route.kind().is_none();
        self.forming.as_ref().is_some_and(|forming| forming.is_in_prompt() || is_unknown())
    }

    /// Whether it may help to ask for the form in the prompt.
    pub(super) fn may_describe_form(&self) -> bool {
        self.forming.as_ref().is_some_and(|forming| !forming.is_in_prompt())
    }

    /// The server refuses the form.
    pub(super) fn describe_form(&mut self, refusal: UpstreamError) {
        if let Some(forming) = &mut self.forming {
            forming.refusal = Some(refusal);
        }
    }
}

/// Declares the properties that a schema requires and nowhere describes. It says the same, and servers that make a grammar of it
/// would leave them out: llama.cpp's goes by `properties` alone.
pub(super) fn declare_required(format: &mut Option<ResponseFormat>) {
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = format {
        declare_required_in(schema);
    }
}

fn declare_required_in(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(parts)) => {
                parts.values_mut().for_each(declare_required_in);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(parts)) => {
                parts.iter_mut().for_each(declare_required_in);
            }
            ("items" | "additionalProperties", part) => declare_required_in(part),
            _ => {}
        }
    }
    // What else may say what a property is.
    const ELSEWHERE: [&str; 6] =
        ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "unevaluatedProperties"];
    let may_have_any = schema.get("additionalProperties").is_none_or(|more| *more == Value::Bool(true));
    let required = match schema.get("required") {
        Some(Value::Array(required))
            if may_have_any && !ELSEWHERE.iter().any(|key| schema.contains_key(*key)) =>
        {
            required.clone()
        }
        _ => return,
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return };
    for name in required.iter().filter_map(Value::as_str) {
        if !properties.contains_key(name) {
            properties.insert(name.to_owned(), json!({}));
        }
    }
}

/// Whether a text has the form without having been asked for it.
pub(super) fn fits_already(format: &ResponseFormat, text: &str) -> bool {
    *format == ResponseFormat::JsonObject
        && serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

/// The JSON of an answer that fits; else all of it, and why it does not.
async fn fitting(format: ResponseFormat, text: String) -> (String, Result<(), Misfit>) {
    let json = without_fence(&text).to_owned();
    let checked = json.clone();
    let check = spawn_blocking(move || check(&format, &checked));
    match tokio::time::timeout(CHECK_TIME, check).await {
        Ok(Ok(Err(misfit))) => (text, Err(misfit)),
        Ok(_) | Err(_) => (json, Ok(())),
    }
}

fn check(format: &ResponseFormat, text: &str) -> Result<(), Misfit> {
    let any_object = json!({"type": "object"});
    let schema = match format {
        ResponseFormat::JsonObject => &any_object,
        ResponseFormat::JsonSchema { schema, .. } => schema,
    };
    let validator = BoundedValidator::new(schema).map_err(|_| Misfit::Schema)?;
    let value = serde_json::from_str(text);
    let value = value.map_err(|error| Misfit::Answer(format!("it is no JSON: {error}")))?;
    // One that would take too long is not held against the answer.
    match validator.faults(&value, schema, 1).unwrap_or_default().pop() {
        None => Ok(()),
        Some(fault) => Err(Misfit::Answer(fault)),
    }
}

/// What stands in a fence, where the text is nothing else.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.chars().all(char::is_alphanumeric) => inner.trim(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_what_a_schema_requires_is_declared_where_nothing_else_says_what_it_is() {
        let declared = |schema: Value| {
            let mut format =
                Some(ResponseFormat::JsonSchema { name: None, description: None, strict: None, schema });
            declare_required(&mut format);
            let Some(ResponseFormat::JsonSchema { schema, .. }) = format else { unreachable!() };
            schema
        };
        let inner = json!({"type": "object", "required": ["adults", "children"]});
        let outer = json!({"type": "object", "properties": {"people": {"type": "array", "items": inner}}, "required": ["people", "place"]});
        assert_eq!(
            declared(outer),
            json!({"type": "object", "properties": {"place": {}, "people": {"type": "array", "items":
                {"type": "object", "required": ["adults", "children"], "properties": {"adults": {}, "children": {}}}}},
                "required": ["people", "place"]})
        );
        for same in [
            json!({"type": "object", "required": ["a"], "additionalProperties": false}),
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}], "required": ["a"]}),
            json!({"$ref": "#/$defs/a", "required": ["a"], "$defs": {"a": {"properties": {"a": {"type": "string"}}}}}),
            json!({"required": [1, null]}),
            json!(true),
        ] {
            let before = same.clone();
            let mut now = declared(same);
            if let Some(fields) = now.as_object_mut()
                && fields.get("properties").is_some_and(|properties| *properties == json!({}))
            {
                fields.remove("properties");
            }
            assert_eq!(now, before);
        }
    }

    #[test]
    fn a_fence_around_the_whole_is_taken_away() {
        assert_eq!(without_fence("```json\n{\"a\": 1}\n```\n"), "{\"a\": 1}");
        assert_eq!(without_fence("```\n[]```"), "[]");
        assert_eq!(without_fence(" {} "), "{}");
        assert_eq!(without_fence("see ```json\n{}\n```"), "see ```json\n{}\n```");
    }
}
