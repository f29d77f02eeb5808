//! The client for addresses that a model may name.

use std::{error::Error, sync::Arc, time::Duration};

use ipnet::IpNet;
use registry_core::{ErrorKind, ToolError};
use reqwest::{
    Method, Response, Url,
    dns::Resolve,
    header::{self, HeaderMap},
    redirect,
};

use super::{
    BodyError, Fetched, read_body,
    resolve::{Allowed, Checked, NotPublic, System},
};

const MAX_REDIRECTS: usize = 5;
const MAX_BYTES: usize = 5 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Fetches from the public internet and from nowhere else, so that a model, or a page that talks to it, cannot use this
/// machine to look into its network.
///
/// The address that is checked is the one that is connected to: names are looked up once, by the connection itself, and each
/// address that comes back must be public. Redirects are followed by hand, at most five, each checked like the first
/// address. The proxy of the environment is not used, since it would do the looking up. A body may have 5 MiB after
/// decompression and all of a fetch may take 20 s; both can be changed.
///
/// A server's own public address is public: what listens there has to look after itself.
#[derive(Debug, Clone)]
pub struct PublicHttpClient {
    client: reqwest::Client,
    allowed: Arc<Allowed>,
    max_bytes: usize,
    timeout: Duration,
}

impl PublicHttpClient {
    /// A client for the public internet.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn new() -> Result<Self, ToolError> {
        Self::builder().build()
    }

    /// A client with other limits, or with private addresses that may be reached all the same.
    pub fn builder() -> PublicHttpClientBuilder {
        PublicHttpClientBuilder {
            allowed: Allowed::default(),
            resolver: Arc::new(System),
            max_bytes: MAX_BYTES,
            timeout: TIMEOUT,
        }
    }

    /// Fetches an address. Any status is an answer.
    ///
    /// # Errors
    /// `InvalidArguments` for what is no `http` or `https` address or has a user name or password in it, `PermissionDenied`
    /// for an address that is not public, `Timeout`, and `Failed` for what cannot be reached, is too large or redirects
    /// without end.
    pub async fn fetch(&self, url: &str) -> Result<Fetched, ToolError> {
        let url = Url::parse(url.trim()).map_err(|error| {
            // Without the address itself, which may have a password in it.
            ToolError::invalid(format!("not a web address: {error}")).with_feedback(
                "That is not a web address. Give a whole one, such as https://example.org/page.",
            )
        })?;
        let host = host(&url).to_owned();
        tokio::time::timeout(self.timeout, self.follow(url))
            .await
            .unwrap_or_else(|_| Err(self.too_slow(&host)))
    }

    /// Sends a request under the same checks, and follows no redirect. Any status is an answer.
    ///
    /// # Errors
    /// The same as those of [`fetch`](Self::fetch).
    pub async fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: impl Into<reqwest::Body>,
    ) -> Result<Fetched, ToolError> {
        self.check(&url)?;
        let request = self.client.request(method, url.clone()).headers(headers).body(body);
        let sent = async {
            let response = request.send().await.map_err(|error| failed(&url, error))?;
            self.read(url.clone(), response).await
        };
        tokio::time::timeout(self.timeout, sent).await.unwrap_or_else(|_| Err(self.too_slow(host(&url))))
    }

    fn too_slow(&self, host: &str) -> ToolError {
        let limit = self.timeout.as_secs_f64();
        ToolError::new(ErrorKind::Timeout, format!("{host} took longer than {limit} s")).retryable()
    }

    async fn follow(&self, mut url: Url) -> Result<Fetched, ToolError> {
        for _ in 0..=MAX_REDIRECTS {
            self.check(&url)?;
            let request = self.client.get(url.clone()).header(header::ACCEPT, "*/*");
            let response = request.send().await.map_err(|error| failed(&url, error))?;
            match redirected(&url, &response)? {
                Some(next) => url = next,
                None => return self.read(url, response).await,
            }
        }
        Err(ToolError::failed(format!("more than {MAX_REDIRECTS} redirects, the last to {}", host(&url))))
    }

    /// Checks what the lookup of the name cannot: the scheme, credentials, and a host that is an address already.
    fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(ToolError::invalid(format!("`{scheme}:` cannot be fetched, only http and https")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = format!("the address of {} has a user name or password in it", host(url));
            return Err(ToolError::invalid(message)
                .with_feedback("Leave the user name and password out of the address."));
        }
        let literal = match url.host() {
            Some(url::Host::Ipv4(address)) => Some(address.into()),
            Some(url::Host::Ipv6(address)) => Some(address.into()),
            _ => None,
        };
        literal.map_or(Ok(()), |address| self.allowed.address(address)).map_err(|cause| refused(url, cause))
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<Fetched, ToolError> {
        let body = read_body(&mut response, self.max_bytes).await.map_err(|error| match error {
            BodyError::TooLarge(_) => self.too_large(&url),
            BodyError::Broken(error) => failed(&url, error),
        })?;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        Ok(Fetched {
            status: response.status(),
            content_type: content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
            body,
            url,
        })
    }

    fn too_large(&self, url: &Url) -> ToolError {
        ToolError::failed(format!("what {} sends is larger than {} bytes", host(url), self.max_bytes))
            .with_feedback("The page is too large to be read. Use another source.")
    }
}

/// Makes a [`PublicHttpClient`].
#[derive(derive_more::Debug)]
#[must_use]
pub struct PublicHttpClientBuilder {
    allowed: Allowed,
    #[debug(skip)]
    resolver: Arc<dyn Resolve>,
    max_bytes: usize,
    timeout: Duration,
}

impl PublicHttpClientBuilder {
    /// Lets addresses of a network be reached though they are private: `10.20.0.0/16` for a company's wiki,
    /// `127.0.0.0/8` for a test's own server.
    pub fn allow(mut self, net: impl Into<IpNet>) -> Self {
        self.allowed.nets.push(net.into());
        self
    }

    /// Lets a host be reached by its name wherever that leads. Who answers for the name decides what it opens.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.allowed.hosts.push(host.into());
        self
    }

    /// The most that a body may have after decompression.
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// The longest that a fetch may take, redirects and body included.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Looks names up elsewhere than in the system. What it answers is checked all the same.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// The client.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn build(self) -> Result<PublicHttpClient, ToolError> {
        let allowed = Arc::new(self.allowed);
        let resolver = Arc::new(Checked { allowed: Arc::clone(&allowed), inner: self.resolver });
        let client = super::build_client(|| {
            reqwest::Client::builder()
                .no_proxy()
                .redirect(redirect::Policy::none())
                .referer(false)
                .dns_resolver(Arc::clone(&resolver))
        })?;
        Ok(PublicHttpClient { client, allowed, max_bytes: self.max_bytes, timeout: self.timeout })
    }
}

/// Where a redirect leads; `None` where the response is the answer.
fn redirected(from: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let to = from.join(&location).map_err(|error| {
        ToolError::failed(format!("{} redirects to what is no address: {error}", host(from)))
    })?;
    Ok(Some(to))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn failed(url: &Url, error: reqwest::Error) -> ToolError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(not_public) = error.downcast_ref::<NotPublic>() {
            return refused(url, *not_public);
        }
        cause = error.source();
    }
    let host = host(url);
    let feedback = format!("{host} could not be reached. Check the address, or use another source.");
    let error = ToolError::from(error.without_url());
    let failed = ToolError::failed(format!("{host}: {}", error.message())).with_feedback(feedback);
    if error.is_retryable() { failed.retryable() } else { failed }
}

/// The operator sees which address it was; callers and the model do not, or they could map the network by asking.
fn refused(url: &Url, cause: NotPublic) -> ToolError {
    let host = host(url);
    let message = format!("{host} is not on the public internet and may not be fetched");
    ToolError::new(ErrorKind::PermissionDenied, message.clone())
        .with_detail(format!("{host} may not be fetched: {cause}"))
        .with_feedback(format!("{message}. Use another source."))
}
