//! A proxy that passes bytes on and reads nothing of them: what Toolrack is measured against.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use reqwest::Client;

use crate::{Fault, process};

pub(crate) const ROLE: &str = "--bare";

pub(crate) async fn serve(address: &str, upstream: String) -> Result<(), Fault> {
    let router = Router::new()
        .route("/v1/chat/completions", post(pass))
        .with_state((toolrack_http::build_client(|| Client::builder().no_proxy())?, upstream));
    process::serve(address, router).await
}

async fn pass(State((client, upstream)): State<(Client, String)>, body: Bytes) -> Response {
    let request = client.post(format!("{upstream}/chat/completions"));
    match request.header(header::CONTENT_TYPE, "application/json").body(body).send().await {
        Ok(response) => {
            let headers = [(header::CONTENT_TYPE, "text/event-stream")];
            (response.status(), headers, Body::from_stream(response.bytes_stream())).into_response()
        }
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
