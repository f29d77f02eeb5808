//! Requests to addresses that an MCP server, or whoever it names, has given: bounded, and to nowhere inside.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use registry_core::ToolError;
use reqwest::{
    Method, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolrack_http::{Fetched, PublicHttpClient};
use url::{
    Host, Origin,
    form_urlencoded::{Serializer, byte_serialize},
};

/// How long an answer may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes.
const MAX_REPLY: usize = 256 * 1024;
/// The longest address that is taken, in bytes.
const MAX_URL: usize = 2000;

/// Reaches the public internet, and where the operator has named an address: that of the MCP server, and that of its authorization server
/// where the configuration has one. What else listens on such a host is reached only where everybody reaches it.
#[derive(Debug)]
pub(super) struct Web {
    public: PublicHttpClient,
    /// Reaches the hosts that the operator has named, and is asked for what has their origin.
    named: PublicHttpClient,
    origins: Vec<Origin>,
    /// Whether the operator has named an address of `http`.
    takes_http: bool,
}

/// Why there is no answer that can be used.
#[derive(Debug)]
pub(super) enum Failed {
    /// The other side says so, in OAuth's words: `invalid_grant`.
    Refused(StatusCode, String),
    /// It was not reached, or said nothing that is understood.
    Away(String),
    /// It has something else at the address.
    Other,
}

impl Failed {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Refused(status, error) if error.is_empty() => format!("it answered {status}"),
            Self::Refused(status, error) => format!("it answered {status} {error}"),
            Self::Away(cause) => cause.clone(),
            Self::Other => "it answered with what is no JSON of that kind".to_owned(),
        }
    }
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        Self::Away(error.detail().to_owned())
    }
}

impl Web {
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub(super) fn new(named: &[&Url]) -> Result<Self, String> {
        let bounded = || PublicHttpClient::builder().timeout(TIMEOUT).max_bytes(MAX_REPLY);
        let mut builder = bounded();
        for url in named {
            builder = match url.host() {
                Some(Host::Ipv4(address)) => {
                    builder.allow(ipnet::IpNet::from(std::net::IpAddr::from(address)))
                }
                Some(Host::Ipv6(address)) => {
                    builder.allow(ipnet::IpNet::from(std::net::IpAddr::from(address)))
                }
                Some(Host::Domain(name)) => builder.allow_host(name),
                None => builder,
            };
        }
        let fault = |error: ToolError| error.message().to_owned();
        Ok(Self {
            public: bounded().build().map_err(fault)?,
            named: builder.build().map_err(fault)?,
            origins: named.iter().map(|url| url.origin()).collect(),
            takes_http: named.iter().any(|url| url.scheme() == "http"),
        })
    }

    fn client(&self, url: &Url) -> &PublicHttpClient {
        if self.origins.contains(&url.origin()) { &self.named } else { &self.public }
    }

    /// An address that was given, checked.
    pub(super) fn address(&self, text: &str) -> Result<Url, String> {
        let fault = |why: &str| Err(format!("it names an address that {why}"));
        if text.len() > MAX_URL {
            return fault("is too long");
        }
        match Url::parse(text) {
            Err(_) => fault("is none"),
            Ok(url) if !url.has_host() || !url.username().is_empty() || url.password().is_some() => {
                fault("is none")
            }
            Ok(url) if url.fragment().is_some() => fault("has a fragment"),
            Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && self.takes_http) => Ok(url),
            Ok(_) => fault("does not begin with https://"),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, Failed> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        read(self.client(&url).send(Method::GET, url, headers, "").await?)
    }

    pub(super) async fn post_json<T: DeserializeOwned>(&self, url: Url, body: &Value) -> Result<T, Failed> {
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(ACCEPT, json.clone()), (CONTENT_TYPE, json)]);
        read(self.client(&url).send(Method::POST, url, headers, body.to_string()).await?)
    }

    /// Sends a form as a client, and gives what comes back, which may be nothing.
    pub(super) async fn post_form(
        &self,
        url: Url,
        client: &Client,
        fields: &[(&str, &str)],
    ) -> Result<Vec<u8>, Failed> {
        let (headers, form) = form_of(client, fields)?;
        let fetched = self.client(&url).send(Method::POST, url, headers, form).await?;
        match fetched.status.is_success() {
            true => Ok(fetched.body),
            false => Err(refused(&fetched)),
        }
    }
}

/// This server as a client of an authorization server.
#[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// Whether the secret goes into the form, not into a header.
    #[serde(default)]
    pub(super) secret_in_form: bool,
}

/// The headers and the body of a form that a client sends.
fn form_of(client: &Client, fields: &[(&str, &str)]) -> Result<(HeaderMap, String), Failed> {
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let json = HeaderValue::from_static("application/json");
    let mut headers = HeaderMap::from_iter([(ACCEPT, json), (CONTENT_TYPE, form_type)]);
    let mut form = Serializer::new(String::new());
    form.extend_pairs(fields);
    match &client.secret {
        Some(secret) if !client.secret_in_form => {
            headers.insert(AUTHORIZATION, basic(&client.id, secret)?);
        }
        secret => {
            form.append_pair("client_id", &client.id);
            if let Some(secret) = secret {
                form.append_pair("client_secret", secret);
            }
        }
    }
    Ok((headers, form.finish()))
}

/// RFC 6749, section 2.3.1: both are encoded before.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, Failed> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let mut value =
        HeaderValue::try_from(format!("Basic {pair}")).map_err(|error| Failed::Away(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn read<T: DeserializeOwned>(fetched: Fetched) -> Result<T, Failed> {
    if !fetched.status.is_success() {
        return Err(refused(&fetched));
    }
    serde_json::from_slice(&fetched.body).map_err(|_| Failed::Other)
}

/// Of what it says the error's name is kept, and nothing that could hold what was sent to it.
fn refused(fetched: &Fetched) -> Failed {
    let body = serde_json::from_slice::<Value>(&fetched.body).ok();
    let error = body.as_ref().and_then(|body| body.get("error")?.as_str()).unwrap_or_default();
    Failed::Refused(fetched.status, error_name(error))
}

/// The name of an error, such as `invalid_grant`; empty for what is none.
pub(super) fn error_name(text: &str) -> String {
    let is_name = text.len() <= 60 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name { text.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Something that listens on this machine, and how often it was reached.
    async fn listening() -> (SocketAddr, Arc<AtomicU32>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, reached) = (listener.local_addr().unwrap(), Arc::<AtomicU32>::default());
        let count = Arc::clone(&reached);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (address, reached)
    }

    #[tokio::test]
    async fn b21_of_a_host_that_the_operator_has_named_no_other_port_is_reached() {
        let ((server, served), (other, reached)) = (listening().await, listening().await);
        let client = Client { id: "a".to_owned(), secret: None, secret_in_form: false };
        for host in ["127.0.0.1", "localhost"] {
            let url =
                |address: SocketAddr| Url::parse(&format!("http://{host}:{}/mcp", address.port())).unwrap();
            let web = Web::new(&[&url(server)]).unwrap();
            let before = served.load(Ordering::SeqCst);
            assert!(web.get::<Value>(url(server)).await.is_ok(), "{host}");
            assert!(web.post_json::<Value>(url(server), &json!({})).await.is_ok(), "{host}");
            assert_eq!(served.load(Ordering::SeqCst), before + 2);
            assert!(matches!(web.get::<Value>(url(other)).await, Err(Failed::Away(_))), "{host}");
            assert!(web.post_json::<Value>(url(other), &json!({})).await.is_err(), "{host}");
            assert!(web.post_form(url(other), &client, &[]).await.is_err(), "{host}");
        }
        assert_eq!(reached.load(Ordering::SeqCst), 0);
    }
}
