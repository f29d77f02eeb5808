//! HTTP requests of commands to a running server.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use reqwest::{Client, Method, RequestBuilder, Url, redirect};
use serde_json::{Value, json};
use toolrack_http::build_client;

use super::{Settings, settings::Secret, terminal::one_line};

/// The timeout of a request, in addition to that of module discovery.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which server a command uses.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArguments {
    /// URL of the running server [default: the configured `listen` address]
    #[arg(long, visible_alias = "url", env = "TOOLRACK_SERVER", value_name = "URL")]
    server: Option<String>,
    /// A user's key; commands that change the server need an admin's [default: the configured `api_key`]
    #[arg(long, env = "TOOLRACK_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<Secret>,
}

/// Options of commands that ask a running server.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub(super) server: ServerArguments,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A running server.
pub(super) struct Server {
    base: Url,
    key: Option<Secret>,
    http: Client,
}

impl Server {
    pub(super) fn new(asked: &ServerArguments, settings: &Settings) -> Result<Self, String> {
        const SUCH: &str = "write one such as http://127.0.0.1:7331";
        let given = asked.server.as_deref().filter(|server| !server.is_empty());
        let text = given.map_or_else(|| format!("http://{}", reachable(settings.listen)), str::to_owned);
        let base = Url::parse(&text)
            .map_err(|error| format!("--server: this is not an address ({error}); {SUCH}"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(format!("--server: the address does not begin with http:// or https://; {SUCH}"));
        }
        let patience = settings.modules.discovery_timeout + PATIENCE;
        let client = || Client::builder().redirect(redirect::Policy::none()).timeout(patience);
        let http = build_client(client).map_err(|error| format!("the system's TLS: {error}"))?;
        let key = asked.key.clone().filter(|key| !key.is_empty());
        Ok(Self { base, key: key.or_else(|| settings.api_key.clone()), http })
    }

    /// Its address, without a slash at its end.
    pub(super) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The key that it is asked with.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_ref().map(Secret::as_str)
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, String> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| "--server: this is no address of a server".to_owned())?
            .pop_if_empty()
            .extend(path);
        let request = self.http.request(method, url);
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key.as_str()),
            None => request,
        })
    }

    pub(super) async fn ask(&self, method: Method, path: &[&str]) -> Result<Value, String> {
        self.answer(self.request(method, path)?).await
    }

    /// Accepts the tools with this digest.
    pub(super) async fn accept(&self, path: &[&str], digest: &str) -> Result<Value, String> {
        self.answer(self.request(Method::POST, path)?.json(&json!({ "digest": digest }))).await
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, String> {
        let base = self.base.as_str();
        let answer = request.send().await.map_err(|error| {
            let cause = error.without_url();
            format!("no server answers at {base} ({cause}); start one with `toolrack serve`, or name it with --server")
        })?;
        let status = answer.status();
        let body: Value = answer
            .json()
            .await
            .map_err(|error| format!("{base} does not answer as a Toolrack does: {}", error.without_url()))?;
        if status.is_success() {
            return Ok(body);
        }
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or("it does not say why");
        Err(format!("the server refuses with {}: {}", status.as_u16(), one_line(message)))
    }
}

/// The address under which a local server with this `listen` address is reached.
fn reachable(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, listen.port()).into() } else { listen }
}
