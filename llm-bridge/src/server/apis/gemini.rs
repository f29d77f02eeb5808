//! Vectors of texts as Gemini gives them, `MODEL:embedContent` and `MODEL:batchEmbedContents`: <https://ai.google.dev/api/embeddings>.

use axum::{
    Json,
    extract::Request,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolrack_apis::{Front, gemini::GeminiFront};

use super::{
    fronts::{read, reply},
    ollama::{checked, vectors},
    passed::require_server,
};
use crate::server::{
    App,
    requests::{
        api_error::ApiError,
        body::{Body, Sender, decode, object},
    },
};

const ONE: &str = ":embedContent";
const MANY: &str = ":batchEmbedContents";

/// Whether an address asks for vectors.
pub(in crate::server) fn embeds(path: &str) -> bool {
    path.ends_with(ONE) || path.ends_with(MANY)
}

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Many { requests: Vec<One> },
    One(One),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    content: Content,
    #[serde(alias = "output_dimensionality")]
    output_dimensionality: Option<u64>,
}

#[derive(Deserialize)]
struct Content {
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    text: String,
}

impl Body for Asked {
    const EXAMPLE: &str =
        "`{\"content\": {\"parts\": [{\"text\": TEXT}]}}`, or several of them in `requests`";
}

impl One {
    fn text(&self) -> String {
        self.content.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Has the model server make vectors of texts.
pub(in crate::server) async fn embed(app: &App, request: Request) -> Result<Response, ApiError> {
    let sender = Sender::of(&request);
    let (parts, body) = read(&GeminiFront, request).await?;
    let path = percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy();
    let named = path.split_once("/models/").and_then(|(_, rest)| rest.rsplit_once(':'));
    let model = checked(named.map(|(model, _)| model.to_owned()).unwrap_or_default())?;
    let asked: Asked = decode(sender, body.len(), move || object(&body)).await??.1;
    require_server(app.backend.upstream())?;
    let (requests, is_one) = match asked {
        Asked::One(one) => (vec![one], true),
        Asked::Many { requests } => (requests, false),
    };
    let texts: Vec<String> = requests.iter().map(One::text).collect();
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err(ApiError::invalid("content", "`content` has no text; send a part with `text`"));
    }
    let dimensions = requests.first().and_then(|first| first.output_dimensionality);
    if requests.iter().any(|one| one.output_dimensionality != dimensions) {
        let message = "`outputDimensionality` has to be the same in all requests";
        return Err(ApiError::invalid("outputDimensionality", message));
    }
    Ok(match vectors(app, &model, &texts, dimensions).await {
        Ok(answered) => {
            let mut all = answered.embeddings.into_iter().map(|values| json!({ "values": values }));
            Json(match is_one {
                true => json!({ "embedding": all.next() }),
                false => json!({ "embeddings": all.collect::<Vec<Value>>() }),
            })
            .into_response()
        }
        Err(error) => reply(GeminiFront.failure(&error.into())),
    })
}
