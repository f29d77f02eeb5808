//! One operation of the document: a method of a path.

use std::collections::BTreeMap;

use axum::http::Method;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::shapes::Error;
use crate::server::{
    callers::identity::PERSONA_HEADER,
    operating::backup::GZIP,
    requests::{api_error::CHALLENGE, key::PLACES},
};

const JSON: &str = "application/json";
/// The content type of uploaded files.
pub(in crate::server) const BYTES: &str = "application/octet-stream";

/// The content type of forms with files.
pub(in crate::server) const FORM: &str = "multipart/form-data";

const LATE: &str = "The body did not come in time (`request_timeout`).";

/// A reference to the schema of a type in the document.
type SchemaOf = fn(&mut SchemaGenerator) -> Value;

fn schema_of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().into()
}

/// All responses with one status.
#[derive(Clone, Default)]
struct Answer {
    descriptions: Vec<&'static str>,
    /// Content types with their schemas; empty for a response without a body.
    bodies: Vec<(&'static str, Option<SchemaOf>)>,
    headers: BTreeMap<&'static str, Value>,
}

/// A method of a path, with what it reads and answers. The errors that every operation can answer with are added to those named here: of all
/// that read JSON, of all that need a key, and of this server at all.
#[derive(Clone)]
pub(in crate::server) struct Operation {
    pub(in crate::server) method: Method,
    tag: &'static str,
    id: String,
    summary: String,
    details: Option<&'static str>,
    parameters: Vec<Value>,
    /// Content type of the request's body, and its schema.
    body: Option<(&'static str, Option<SchemaOf>)>,
    answers: BTreeMap<String, Answer>,
    needs_key: bool,
}

impl Operation {
    /// `id` is its name in generated clients.
    pub(in crate::server) fn new(
        method: Method,
        tag: &'static str,
        id: impl Into<String>,
        summary: impl Into<String>,
    ) -> Self {
        let (id, summary, parameters) = (id.into(), summary.into(), Vec::new());
        let (details, body, answers, needs_key) = (None, None, BTreeMap::new(), false);
        let operation = Self { method, tag, id, summary, details, parameters, body, answers, needs_key };
        operation
            .refuses(403, "A page of another origin sent the request (`origin_not_allowed`).")
            .refuses(421, "`Host` is not a name of this server (`host_not_allowed`).")
            .refuses(500, "The server failed; see its log.")
    }

    /// A longer description, in Markdown.
    pub(in crate::server) fn details(self, details: &'static str) -> Self {
        Self { details: Some(details), ..self }
    }

    /// A parameter in the path.
    pub(in crate::server) fn path(self, name: &str, about: &str) -> Self {
        self.parameter("path", name, about, json!({"type": "string"}), true)
            .refuses(400, "The path is not UTF-8 (`invalid_request_error`).")
    }

    /// An optional query parameter.
    pub(in crate::server) fn query(self, name: &str, about: &str) -> Self {
        self.parameter("query", name, about, json!({"type": "string"}), false)
    }

    /// An optional query parameter that is a whole number.
    pub(in crate::server) fn query_number(self, name: &str, about: &str, least: i64, most: i64) -> Self {
        self.parameter(
            "query",
            name,
            about,
            json!({"type": "integer", "minimum": least, "maximum": most}),
            false,
        )
    }

    /// An optional query parameter that is a time of RFC 3339.
    pub(in crate::server) fn query_time(self, name: &str, about: &str) -> Self {
        self.parameter("query", name, about, json!({"type": "string", "format": "date-time"}), false)
    }

    /// An optional query parameter that is one of some words.
    pub(in crate::server) fn query_choice(self, name: &str, about: &str, choices: &[&str]) -> Self {
        self.parameter("query", name, about, json!({"type": "string", "enum": choices}), false)
    }

    /// An optional query parameter that is `true` or `false`.
    pub(in crate::server) fn query_flag(self, name: &str, about: &str) -> Self {
        self.parameter("query", name, about, json!({"type": "boolean"}), false)
    }

    /// A required query parameter.
    pub(in crate::server) fn required_query(self, name: &str, about: &str) -> Self {
        self.parameter("query", name, about, json!({"type": "string"}), true)
    }

    /// An optional query parameter that may be repeated.
    pub(in crate::server) fn query_list(self, name: &str, about: &str) -> Self {
        self.parameter("query", name, about, json!({"type": "array", "items": {"type": "string"}}), false)
    }

    /// An optional header.
    pub(in crate::server) fn header(self, name: &str, about: &str) -> Self {
        self.parameter("header", name, about, json!({"type": "string"}), false)
    }

    fn parameter(mut self, place: &str, name: &str, about: &str, schema: Value, required: bool) -> Self {
        self.parameters.push(
            json!({"name": name, "in": place, "description": about, "required": required, "schema": schema}),
        );
        self
    }

    /// Reads this from a JSON body, with the errors of [`JsonBody`](crate::server::requests::body::JsonBody).
    pub(in crate::server) fn reads<T: JsonSchema>(self) -> Self {
        self.takes::<T>()
            .refuses(400, "The body is not JSON, or not of this schema (`invalid_request_error`).")
            .refuses(413, "The body is too large (`invalid_request_error`).")
            .refuses(415, "The body was not sent as `application/json` (`invalid_request_error`).")
    }

    /// Reads this from a JSON body, with errors of its own.
    pub(in crate::server) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some((JSON, Some(schema_of::<T>))), ..self }.refuses(408, LATE)
    }

    /// Reads bytes from the body.
    pub(in crate::server) fn takes_bytes(self) -> Self {
        Self { body: Some((BYTES, None)), ..self }.refuses(408, LATE)
    }

    /// Reads a file that is compressed by gzip.
    pub(in crate::server) fn takes_gzip(self) -> Self {
        Self { body: Some((GZIP, None)), ..self }.refuses(408, LATE)
    }

    /// Reads a form with files.
    pub(in crate::server) fn takes_form(self) -> Self {
        Self { body: Some((FORM, None)), ..self }
            .refuses(408, LATE)
            .refuses(413, "The body is too large (`invalid_request_error`).")
            .refuses(415, "The body was not sent as `multipart/form-data` (`invalid_request_error`).")
    }

    /// Answers with this as JSON. A status may be named several times, with different types.
    pub(in crate::server) fn answers<T: JsonSchema>(self, status: impl ToString, why: &'static str) -> Self {
        self.answer(status, why, Some((JSON, Some(schema_of::<T>))))
    }

    /// Answers with a body that has no schema.
    pub(in crate::server) fn answers_with(
        self,
        status: impl ToString,
        content_type: &'static str,
        why: &'static str,
    ) -> Self {
        self.answer(status, why, Some((content_type, None)))
    }

    /// Answers without a body.
    pub(in crate::server) fn answers_nothing(self, status: impl ToString, why: &'static str) -> Self {
        self.answer(status, why, None)
    }

    /// Answers with an error.
    pub(in crate::server) fn refuses(self, status: impl ToString, why: &'static str) -> Self {
        self.answers::<Error>(status, why)
    }

    /// The response with this status may have the header `Retry-After`.
    pub(in crate::server) fn retry_after(self, status: impl ToString) -> Self {
        let schema = json!({"type": "integer", "minimum": 1});
        self.answer_header(status, "Retry-After", "Seconds until the next attempt.", schema)
    }

    fn answer_header(
        mut self,
        status: impl ToString,
        name: &'static str,
        about: &str,
        schema: Value,
    ) -> Self {
        let answer = self.answers.entry(status.to_string()).or_default();
        answer.headers.insert(name, json!({"description": about, "schema": schema}));
        self
    }

    fn answer(
        mut self,
        status: impl ToString,
        description: &'static str,
        body: Option<(&'static str, Option<SchemaOf>)>,
    ) -> Self {
        let answer = self.answers.entry(status.to_string()).or_default();
        answer.descriptions.push(description);
        answer.bodies.extend(body);
        self
    }

    /// Needs a key, where the server asks for one.
    pub(in crate::server) fn behind_key(self) -> Self {
        Self { needs_key: true, ..self }
            .header(PERSONA_HEADER, "One of the user's personas, in place of the default one.")
            .refuses(403, "The user may not use the persona that the request names (`persona_not_allowed`).")
            .refuses(403, "The token has not the scopes that are needed (`insufficient_scope`), or its user may not come in (`sign_in_not_allowed`).")
            .refuses(401, "The key is missing or not valid (`invalid_api_key`), or the token is not (`invalid_token`).")
            .answer_header(
                401,
                "WWW-Authenticate",
                "How to send a key; with sign-in, what is wrong with the token, and where to get one.",
                json!({"type": "string", "pattern": format!("^{CHALLENGE}")}),
            )
            .refuses(500, "The server's store holds something that cannot be read (`store_corrupt`).")
            .refuses(429, "The user has too many requests under way (`too_many_requests`).")
            .retry_after(429)
            .refuses(503, "The server's store does not answer (`store_unavailable`), or as many requests as may be are under way (`server_busy`).")
            .refuses(503, "The identity provider does not answer (`identity_provider_unavailable`).")
    }

    /// The operation in the document's form. Schemas that it refers to are added to those of requests and of responses.
    pub(super) fn describe(
        self,
        path: &str,
        requests: &mut SchemaGenerator,
        answers: &mut SchemaGenerator,
    ) -> Value {
        let places = PLACES.into_iter().filter(|place| place.is_read_at(path));
        // A server may ask for no key.
        let keys = places.map(|place| json!({place.scheme_name(): []})).chain([json!({})]);
        let body = self.body.map(|(kind, schema)| {
            let content = media_type(schema.map(|schema| schema(requests)));
            json!({"content": {kind: content}, "required": true})
        });
        let responses: Map<String, Value> =
            self.answers.into_iter().map(|(status, answer)| (status, answer.describe(answers))).collect();
        let members = [
            ("tags", Some(json!([self.tag]))),
            ("summary", Some(self.summary.into())),
            ("description", self.details.map(Value::from)),
            ("operationId", Some(self.id.into())),
            ("parameters", Some(self.parameters.into())),
            ("requestBody", body),
            ("responses", Some(responses.into())),
            ("security", self.needs_key.then(|| keys.collect())),
        ];
        members.into_iter().filter_map(|(name, member)| Some((name, member?))).collect()
    }
}

impl Answer {
    fn describe(self, schemas: &mut SchemaGenerator) -> Value {
        let mut kinds: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (kind, schema) in self.bodies {
            let known = kinds.entry(kind).or_default();
            let schema = schema.map(|schema| schema(schemas));
            known.extend(schema.filter(|schema| !known.contains(schema)));
        }
        let content = kinds.into_iter().map(|(kind, mut schemas)| {
            let schema = if schemas.len() > 1 { Some(json!({"anyOf": schemas})) } else { schemas.pop() };
            (kind, media_type(schema))
        });
        let members = [
            ("description", Some(self.descriptions.join(" ").into())),
            ("headers", (!self.headers.is_empty()).then(|| json!(self.headers))),
            ("content", Some(content.collect())),
        ];
        members.into_iter().filter_map(|(name, member)| Some((name, member?))).collect()
    }
}

fn media_type(schema: Option<Value>) -> Value {
    schema.map_or_else(|| json!({}), |schema| json!({"schema": schema}))
}
