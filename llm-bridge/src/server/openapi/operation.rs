//! What the document says of one method of one address.

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use utoipa::openapi::{
    ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema, Type,
    header::HeaderBuilder,
    path::{self, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder},
    security::SecurityRequirement,
};

use super::{KEY, shapes::Error};
use crate::server::identity::PERSONA_HEADER;

const JSON: &str = "application/json";
/// Bytes of whatever kind.
pub(in crate::server) const BYTES: &str = "application/octet-stream";

/// Where the schema of a type stands in the document.
type SchemaOf = fn(&mut SchemaGenerator) -> Ref;

fn schema_of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Ref {
    let schema = schemas.subschema_for::<T>();
    Ref::new(schema.get("$ref").and_then(Value::as_str).unwrap_or_default())
}

/// All that is answered under one status.
#[derive(Clone, Default)]
struct Answer {
    why: Vec<&'static str>,
    /// Content types, and what is of them where that can be said; without any the answer is empty.
    bodies: Vec<(&'static str, Option<SchemaOf>)>,
    retry_after: bool,
}

/// What the document says of one method of one address. Beside what is told to it, it knows what all of a kind can answer: those that
/// read JSON, those behind a key, and those of this server at all.
#[derive(Clone)]
pub(in crate::server) struct Operation {
    tag: &'static str,
    id: String,
    summary: String,
    details: Option<&'static str>,
    parameters: Vec<Parameter>,
    /// Its content type, and its schema where it has one.
    body: Option<(&'static str, Option<SchemaOf>)>,
    answers: BTreeMap<String, Answer>,
    needs_key: bool,
}

impl Operation {
    /// `id` names it in clients that are made from the document.
    pub(in crate::server) fn new(
        tag: &'static str,
        id: impl Into<String>,
        summary: impl Into<String>,
    ) -> Self {
        let (details, parameters, body, answers) = (None, Vec::new(), None, BTreeMap::new());
        let (id, summary) = (id.into(), summary.into());
        let operation = Self { tag, id, summary, details, parameters, body, answers, needs_key: false };
        operation
            .refuses(403, "A page of another origin asks (`origin_not_allowed`).")
            .refuses(421, "The server does not go by the name in `Host` (`host_not_allowed`).")
            .refuses(500, "The server failed; its log says why.")
    }

    /// Another one of the same address, which takes nothing.
    pub(in crate::server) fn beside(&self, id: &str, summary: &str) -> Self {
        Self::new(self.tag, format!("{}_{id}", self.id), summary)
    }

    /// More than fits into the summary, in Markdown.
    pub(in crate::server) fn details(self, details: &'static str) -> Self {
        Self { details: Some(details), ..self }
    }

    /// A name in the address.
    pub(in crate::server) fn path(self, name: &str, about: &str) -> Self {
        self.parameter(ParameterIn::Path, name, about, Type::String)
            .refuses(400, "The address is not UTF-8 (`invalid_request_error`).")
    }

    /// A parameter behind the `?`, which may be left out.
    pub(in crate::server) fn query(self, name: &str, about: &str) -> Self {
        self.parameter(ParameterIn::Query, name, about, Type::String)
    }

    /// The same, which may not be left out.
    pub(in crate::server) fn needed_query(mut self, name: &str, about: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).build();
        let mut parameter = parameter(ParameterIn::Query, name, about, schema);
        parameter.required = Required::True;
        self.parameters.push(parameter);
        self
    }

    /// The same, which may also stand there several times.
    pub(in crate::server) fn query_list(mut self, name: &str, about: &str) -> Self {
        let texts = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
        self.parameters.push(parameter(ParameterIn::Query, name, about, texts.build()));
        self
    }

    /// A header, which may be left out.
    pub(in crate::server) fn header(self, name: &str, about: &str, kind: Type) -> Self {
        self.parameter(ParameterIn::Header, name, about, kind)
    }

    fn parameter(mut self, place: ParameterIn, name: &str, about: &str, kind: Type) -> Self {
        let schema = ObjectBuilder::new().schema_type(kind).build();
        self.parameters.push(parameter(place, name, about, schema));
        self
    }

    /// Reads this from the body, as all do but those that have their own way to.
    pub(in crate::server) fn reads<T: JsonSchema>(self) -> Self {
        self.takes::<T>()
            .refuses(400, "The body is not JSON, or not of its form (`invalid_request_error`).")
            .refuses(413, "The body is too large (`invalid_request_error`).")
            .refuses(415, "The body was not sent as `application/json` (`invalid_request_error`).")
    }

    /// Takes this as the body, without a word on what is answered where it is none.
    pub(in crate::server) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some((JSON, Some(schema_of::<T>))), ..self }
    }

    /// Takes bytes as the body.
    pub(in crate::server) fn takes_bytes(self) -> Self {
        Self { body: Some((BYTES, None)), ..self }
    }

    /// Answers with this as JSON. Of one status there can be several: each may come.
    pub(in crate::server) fn answers<T: JsonSchema>(self, status: impl ToString, why: &'static str) -> Self {
        self.answer(status, why, Some((JSON, Some(schema_of::<T>))))
    }

    /// Answers with something that has no schema.
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

    /// The answer of this status may say when to come back.
    pub(in crate::server) fn retry_after(mut self, status: impl ToString) -> Self {
        self.answers.entry(status.to_string()).or_default().retry_after = true;
        self
    }

    fn answer(
        mut self,
        status: impl ToString,
        why: &'static str,
        body: Option<(&'static str, Option<SchemaOf>)>,
    ) -> Self {
        let answer = self.answers.entry(status.to_string()).or_default();
        answer.why.push(why);
        answer.bodies.extend(body);
        self
    }

    /// Asks for a key.
    pub(in crate::server) fn behind_key(self) -> Self {
        Self { needs_key: true, ..self }
            .header(PERSONA_HEADER, "One of the user's personas, in place of the default one.", Type::String)
            .refuses(403, "The user may not use the persona that the request names (`persona_not_allowed`).")
            .refuses(401, "The key is missing or opens nothing (`invalid_api_key`).")
            .refuses(503, "The server's store does not answer (`store_unavailable`).")
    }

    /// All of it in the document's form. The schemas that it refers to go into those of what is read and what is answered.
    pub(super) fn describe(
        self,
        read: &mut SchemaGenerator,
        answered: &mut SchemaGenerator,
    ) -> path::Operation {
        let body = self.body.map(|(content_type, schema)| {
            let content = ContentBuilder::new().schema(schema.map(|schema| schema(read))).build();
            RequestBodyBuilder::new().content(content_type, content).required(Some(Required::True)).build()
        });
        let mut operation = OperationBuilder::new()
            .tag(self.tag)
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .description(self.details)
            .parameters(Some(self.parameters))
            .request_body(body);
        if self.needs_key {
            // Without a key where none is asked for.
            operation = operation.securities(Some([
                SecurityRequirement::new::<_, [&str; 0], _>(KEY, []),
                SecurityRequirement::default(),
            ]));
        }
        for (status, answer) in self.answers {
            operation = operation.response(status, answer.describe(answered));
        }
        operation.build()
    }
}

fn parameter(place: ParameterIn, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    // What stands in the address is there.
    let required = if place == ParameterIn::Path { Required::True } else { Required::False };
    let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(required);
    parameter.description(Some(about)).schema(Some(schema)).build()
}

impl Answer {
    fn describe(self, schemas: &mut SchemaGenerator) -> Response {
        let mut kinds: BTreeMap<&str, Vec<Ref>> = BTreeMap::new();
        for (content_type, schema) in self.bodies {
            let schemas_of_kind = kinds.entry(content_type).or_default();
            let schema = schema.map(|schema| schema(schemas));
            schemas_of_kind.extend(schema.filter(|schema| !schemas_of_kind.contains(schema)));
        }
        let mut response = ResponseBuilder::new().description(self.why.join(" "));
        for (content_type, schemas) in kinds {
            response =
                response.content(content_type, ContentBuilder::new().schema(one_of_them(schemas)).build());
        }
        if self.retry_after {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
            let about = "In how many seconds to come back.";
            let header = HeaderBuilder::new().schema(Some(seconds)).description(Some(about)).build();
            response = response.header("Retry-After", header);
        }
        response.build()
    }
}

fn one_of_them(mut schemas: Vec<Ref>) -> Option<RefOr<Schema>> {
    match schemas.len() {
        0 | 1 => schemas.pop().map(RefOr::Ref),
        _ => {
            let any = schemas.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
            Some(RefOr::T(Schema::AnyOf(any.build())))
        }
    }
}
