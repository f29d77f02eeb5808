//! The addresses of Ollama's API beside its chat: passed on to an Ollama, and made of what the server lists for others.

pub(in crate::server) mod prompts;

use axum::{
    Json,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    http::{Extensions, HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use registry_core::Permission;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolrack_apis::{
    Failure, Front, ListModels, ListedModel, Provider, check_model,
    ollama::{
        OllamaFront, leave_out_loading,
        models::{EmbedInput, EmbedReply, EmbedRequest, RunningModels, ShowRequest, Version},
    },
};

use super::{
    fronts::{read, reply},
    models,
    passed::require_server,
};
use crate::{
    beside::beside,
    server::{
        App, MAX_BODY,
        callers::identity::Identity,
        openapi::{JsonObject, Operation},
        requests::{
            api_error::ApiError,
            body::{Body, Sender, decode, object},
        },
        routes::Routes,
    },
    turn::PLAIN,
    upstream::{UpstreamError, json_of, read_vectors, vector_tokens},
};

const FRONT: OllamaFront = OllamaFront::Chat;
/// The version whose API is spoken, with OpenAI's Responses and Anthropic's Messages. Clients refuse to work with older ones.
const VERSION: &str = "0.14.0";

/// The routes.
pub(in crate::server) fn routes() -> Routes {
    let get = |id, summary| operation(Method::GET, id, summary);
    let post = |id, summary| operation(Method::POST, id, summary).reads::<JsonObject>();
    Routes::new()
        .add("/api/tags", tags, get("ollama_tags", "The models, as Ollama lists them"))
        .add("/api/ps", running, get("ollama_ps", "The models that are loaded, as Ollama lists them"))
        .add("/api/version", version, get("ollama_version", "The version of Ollama whose API is spoken"))
        .add(
            "/api/show",
            show,
            post("ollama_show", "What a model can do, as Ollama says it")
                .refuses(404, "There is no such model."),
        )
        .add(
            "/api/embed",
            embed,
            post("ollama_embed", "Vectors of texts, as Ollama makes them").refuses(501, NO_DEMO),
        )
        .add(
            "/api/embeddings",
            embed_one,
            post("ollama_embeddings", "The vector of a text, as Ollama made it in earlier versions")
                .refuses(501, NO_DEMO),
        )
}

const NO_DEMO: &str = "There is no model server, only the built-in demo model.";

fn operation(method: Method, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(method, "Ollama", id, summary)
        .details("Passed on to an Ollama; for other model servers it is made of what they say. Errors are `{\"error\": MESSAGE}`.")
        .answers::<JsonObject>(200, "The answer: <https://docs.ollama.com/api>.")
        .refuses(502, "The model server does not answer.")
}

/// Whether the model server is an Ollama.
async fn is_ollama(app: &App) -> bool {
    app.backend.upstream().api().await == Provider::Ollama
}

fn failed(failure: impl Into<Failure>) -> Response {
    reply(FRONT.failure(&failure.into()))
}

async fn pass(app: &App, method: Method, path: &str, body: Bytes) -> Result<Response, UpstreamError> {
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    app.backend.upstream().pass(method, path, HeaderMap::from_iter(headers), body).await
}

/// The body of a request as it may be passed on for whoever sends it: none but admins say how a model is loaded, for all who ask it.
async fn restricted(app: &App, extensions: &Extensions, body: Bytes) -> Result<Bytes, ApiError> {
    let identity = extensions.get::<Identity>();
    let loads = identity.is_some_and(|identity| identity.caller.level >= Permission::Admin);
    if loads || app.backend.upstream().users_load() {
        return Ok(body);
    }
    let sender = identity.map(Identity::sender).unwrap_or_default();
    let length = body.len();
    let read = move || {
        let mut fields: Map<String, Value> = serde_json::from_slice(&body)?;
        leave_out_loading(&mut fields);
        serde_json::to_vec(&fields).map(Bytes::from)
    };
    let restricted = decode(sender, length, read).await?;
    restricted.map_err(|fault| ApiError::invalid("body", fault.to_string()))
}

async fn tags(State(app): State<App>) -> Response {
    if !is_ollama(&app).await {
        let models = models::all(&app).await;
        return models.map_or_else(failed, |models| reply(FRONT.list(&models)));
    }
    let response = match pass(&app, Method::GET, "/api/tags", Bytes::new()).await {
        Ok(response) if response.status().is_success() => response,
        Ok(response) => return response,
        Err(error) => return failed(error),
    };
    let list = to_bytes(response.into_body(), MAX_BODY).await.map_err(|error| error.to_string());
    let list = match list {
        Ok(list) => json_of(list).await,
        Err(cause) => Err(cause),
    };
    let mut list = match list {
        Ok(list) => list,
        Err(fault) => {
            return failed(UpstreamError::failed(format!("its list of models is not JSON: {fault}")));
        }
    };
    if let Some(models) = list.get_mut("models").and_then(Value::as_array_mut) {
        let plain: Vec<Value> = models.iter().filter_map(plain).collect();
        models.extend(plain);
    }
    Json(list).into_response()
}

/// A model of Ollama's list without the server's tools; `None` for one that only makes vectors.
fn plain(model: &Value) -> Option<Value> {
    let capabilities = model.get("capabilities").and_then(Value::as_array);
    let answers = match capabilities {
        Some(capabilities) => capabilities.iter().any(|capability| capability == "completion"),
        None => !model
            .pointer("/details/family")
            .and_then(Value::as_str)
            .is_some_and(|family| family.ends_with("bert")),
    };
    let name = format!("{}{PLAIN}", model.get("name")?.as_str()?);
    let mut plain = model.clone();
    plain.as_object_mut()?.extend(["name", "model"].map(|field| (field.to_owned(), name.as_str().into())));
    answers.then_some(plain)
}

async fn running(State(app): State<App>) -> Response {
    if is_ollama(&app).await {
        return pass(&app, Method::GET, "/api/ps", Bytes::new()).await.unwrap_or_else(failed);
    }
    match models::listed(&app).await {
        Ok(models) => Json(RunningModels::of(&models)).into_response(),
        Err(failure) => failed(failure),
    }
}

async fn version(State(app): State<App>) -> Response {
    let mut version = VERSION.to_owned();
    if is_ollama(&app).await {
        let response = match pass(&app, Method::GET, "/api/version", Bytes::new()).await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => return response,
            Err(error) => return failed(error),
        };
        let said = to_bytes(response.into_body(), MAX_BODY).await.ok();
        let said = said.and_then(|said| serde_json::from_slice::<Version>(&said).ok());
        // It is this server that answers: an older Ollama has not all that it has.
        version =
            said.map(|said| said.version).filter(|said| numbers(said) > numbers(VERSION)).unwrap_or(version);
    }
    Json(Version { version }).into_response()
}

/// The numbers of a version, to be compared.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|part: char| !part.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

async fn decoded<T: Body + Send + 'static>(sender: Sender, body: &Bytes) -> Result<T, ApiError> {
    let body = body.clone();
    decode(sender, body.len(), move || object(&body)).await?.map(|(_, read)| read)
}

/// The name of a model, unless it is too long.
pub(in crate::server) fn checked(model: String) -> Result<String, ApiError> {
    check_model(model).map_err(|fault| ApiError::invalid("model", fault.message))
}

impl Body for ShowRequest {
    const EXAMPLE: &str = "`{\"model\": \"NAME\"}`";
}

async fn show(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let sender = Sender::of(&request);
    let (_, body) = read(&FRONT, request).await?;
    let mut request: ShowRequest = decoded(sender, &body).await?;
    if request.model.is_empty() {
        request.model = std::mem::take(&mut request.name);
    }
    if request.model.is_empty() {
        return Err(ApiError::invalid("model", "`model` is missing; send the name of a model"));
    }
    let model = checked(request.model)?;
    let request = ShowRequest { model, ..request };
    if is_ollama(&app).await {
        let model = request.model.strip_suffix(PLAIN).unwrap_or(&request.model).to_owned();
        let body = json!(ShowRequest { model, ..request }).to_string();
        return Ok(pass(&app, Method::POST, "/api/show", body.into()).await.unwrap_or_else(failed));
    }
    let found = find_model(&app, &request.model).await;
    Ok(found.map_or_else(failed, |model| reply(FRONT.model(&model))))
}

/// The model of this name of a server that is no Ollama.
async fn find_model(app: &App, model: &str) -> Result<ListedModel, Failure> {
    let models = models::all(app).await?;
    // Ollama's clients may name a version that other servers do not have.
    let name = model.strip_suffix(":latest").unwrap_or(model);
    let found = models.iter().find(|listed| listed.id == model || listed.id == name);
    found.cloned().ok_or_else(|| models::unknown(model, &models))
}

impl Body for EmbedRequest {
    const EXAMPLE: &str = "`{\"model\": \"NAME\", \"input\": [TEXT, …]}`";
}

async fn embed(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let sender = Sender::of(&request);
    let (parts, body) = read(&FRONT, request).await?;
    let EmbedRequest { model, input, dimensions, .. } = decoded(sender, &body).await?;
    let model = checked(model)?;
    require_server(app.backend.upstream())?;
    if is_ollama(&app).await {
        let body = restricted(&app, &parts.extensions, body).await?;
        return Ok(pass(&app, Method::POST, "/api/embed", body).await.unwrap_or_else(failed));
    }
    let texts = match input {
        EmbedInput::One(text) => vec![text],
        EmbedInput::Many(texts) => texts,
    };
    Ok(match vectors(&app, &model, &texts, dimensions).await {
        Ok(reply) => Json(reply).into_response(),
        Err(error) => failed(error),
    })
}

/// The request to `POST /api/embeddings`.
#[derive(Deserialize)]
struct EmbedOne {
    model: String,
    prompt: String,
}

impl Body for EmbedOne {
    const EXAMPLE: &str = "`{\"model\": \"NAME\", \"prompt\": TEXT}`";
}

async fn embed_one(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let sender = Sender::of(&request);
    let (parts, body) = read(&FRONT, request).await?;
    let EmbedOne { model, prompt } = decoded(sender, &body).await?;
    let model = checked(model)?;
    require_server(app.backend.upstream())?;
    if is_ollama(&app).await {
        let body = restricted(&app, &parts.extensions, body).await?;
        return Ok(pass(&app, Method::POST, "/api/embeddings", body).await.unwrap_or_else(failed));
    }
    Ok(match vectors(&app, &model, &[prompt], None).await {
        Ok(EmbedReply { embeddings, .. }) => {
            Json(json!({"embedding": embeddings.into_iter().next().unwrap_or_default()})).into_response()
        }
        Err(error) => failed(error),
    })
}

/// Vectors of texts from a server that speaks OpenAI's API. An empty text has none: with it clients of Ollama only load the model.
pub(in crate::server) async fn vectors(
    app: &App,
    model: &str,
    texts: &[String],
    dimensions: Option<u64>,
) -> Result<EmbedReply, UpstreamError> {
    let began = std::time::Instant::now();
    let mut answered = EmbedReply { model: model.to_owned(), ..EmbedReply::default() };
    if texts.iter().all(String::is_empty) {
        return Ok(answered);
    }
    let mut request = json!({"model": model, "input": texts, "encoding_format": "float"});
    if let (Some(dimensions), Value::Object(fields)) = (dimensions, &mut request) {
        fields.insert("dimensions".to_owned(), dimensions.into());
    }
    let reply = app.backend.upstream().embeddings(&request).await?;
    let (size, count) = (reply.len(), texts.len());
    let read = beside(size, move || (read_vectors(&reply, count), vector_tokens(&reply))).await;
    let (embeddings, tokens) = read.unwrap_or_else(|| (Err("this server is being stopped".to_owned()), 0));
    answered.embeddings = embeddings
        .map_err(|fault| UpstreamError::failed(format!("the vectors of the model server: {fault}")))?;
    answered.prompt_eval_count = tokens;
    answered.total_duration = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_versions_are_compared_by_their_numbers() {
        for newer in ["0.14.1", "0.30.0-rc1", "v1.0"] {
            assert!(numbers(newer) > numbers(VERSION), "{newer}");
        }
        for older in ["0.9.12", "0.13.99", "0.0.0", ""] {
            assert!(numbers(older) < numbers(VERSION), "{older}");
        }
    }
}
