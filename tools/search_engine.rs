//! The search engines behind `web_search` and `research`: one row each in [`Kind`].

use std::{error::Error, time::Duration};

use registry_core::{prelude::*, text::shorten};
use toolrack_http::{
    HttpClient,
    reqwest::{RequestBuilder, Response, StatusCode, Url, header::HeaderValue},
};

const TIMEOUT: Duration = Duration::from_secs(10);
const SNIPPET_CHARACTERS: usize = 500;

/// A search engine that `web_search` and `research` use. Without one they are off.
#[derive(Clone, derive_more::Debug)]
#[debug("SearchEngine({kind:?}, {:?})", base.host_str())] // The address may have a password in it.
pub struct SearchEngine {
    kind: Kind,
    base: Url,
    /// Marked as sensitive, so that nothing prints it.
    key: Option<HeaderValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
enum Kind {
    Searxng,
    Brave,
    Tavily,
}

/// One thing found.
#[output]
#[derive(Debug, PartialEq)]
pub(crate) struct SearchResult {
    /// The page's title.
    pub(crate) title: String,
    /// The page's address.
    pub(crate) url: String,
    /// A piece of its text.
    pub(crate) snippet: String,
}

/// The table `[search]` of the configuration.
#[args]
struct SearchSettings {
    /// `searxng`, `brave` or `tavily`.
    engine: Option<String>,
    /// Where SearXNG runs; for the others a server to ask in place of theirs.
    url: Option<String>,
    /// The key of Brave or Tavily.
    #[arg(secret)]
    api_key: Option<String>,
}

#[resource(
    table = "search",
    needs = "set `engine` under [search] in toolrack.toml, or TOOLRACK_SEARCH_ENGINE, to searxng, brave or tavily"
)]
fn search_engine(settings: Settings<SearchSettings>) -> Result<Option<SearchEngine>, InvalidSearchEngine> {
    SearchEngine::from_settings(
        settings.engine.as_deref(),
        settings.url.as_deref(),
        settings.api_key.as_deref(),
    )
}

/// What is wrong with the settings of a search engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[search]: {0}")]
pub struct InvalidSearchEngine(String);

impl Kind {
    fn name(self) -> &'static str {
        self.into()
    }

    /// Where the service is; `None` for one that everybody runs for themselves.
    const fn home(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com/"),
            Self::Tavily => Some("https://api.tavily.com/"),
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Searxng | Self::Tavily => "search",
            Self::Brave => "res/v1/web/search",
        }
    }

    /// Where in the answer the results are, and the field of a result that has its text.
    const fn results(self) -> (&'static str, &'static str) {
        match self {
            Self::Searxng | Self::Tavily => ("/results", "content"),
            Self::Brave => ("/web/results", "description"),
        }
    }
}

impl SearchEngine {
    /// A SearXNG server, by its address. Its `settings.yml` must have `json` under `search.formats`.
    ///
    /// # Errors
    /// When the address is none.
    pub fn searxng(url: &str) -> Result<Self, InvalidSearchEngine> {
        Self::new(Kind::Searxng, Some(url), None)
    }

    /// Brave Search, by an API key.
    ///
    /// # Errors
    /// When the key cannot be one.
    pub fn brave(api_key: &str) -> Result<Self, InvalidSearchEngine> {
        Self::new(Kind::Brave, None, Some(api_key))
    }

    /// Tavily, by an API key.
    ///
    /// # Errors
    /// When the key cannot be one.
    pub fn tavily(api_key: &str) -> Result<Self, InvalidSearchEngine> {
        Self::new(Kind::Tavily, None, Some(api_key))
    }

    /// The engine that the settings `engine`, `url` and `api_key` describe; `None` where all are unset or empty. For Brave
    /// and Tavily `url` is a server to ask in place of theirs, such as a proxy.
    ///
    /// # Errors
    /// When the engine is unknown, or lacks what it needs.
    pub fn from_settings(
        engine: Option<&str>,
        url: Option<&str>,
        api_key: Option<&str>,
    ) -> Result<Option<Self>, InvalidSearchEngine> {
        let given =
            |setting: Option<&str>| setting.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let (url, api_key) = (given(url), given(api_key));
        let Some(engine) = given(engine) else {
            if url.is_some() || api_key.is_some() {
                return Err(InvalidSearchEngine("`engine` is not set".into()));
            }
            return Ok(None);
        };
        let kind = engine.parse().map_err(|_| {
            InvalidSearchEngine(format!(
                "unknown engine `{engine}`; the engines are searxng, brave and tavily"
            ))
        })?;
        Self::new(kind, url.as_deref(), api_key.as_deref()).map(Some)
    }

    fn new(kind: Kind, url: Option<&str>, api_key: Option<&str>) -> Result<Self, InvalidSearchEngine> {
        let name = kind.name();
        let needs = |what: &str| InvalidSearchEngine(format!("{name} needs {what}"));
        let url = url.or(kind.home()).ok_or_else(|| needs("`url`, such as http://127.0.0.1:8888"))?;
        let mut base = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| needs("a `url` that begins with http:// or https://"))?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let key = match (kind, api_key) {
            (Kind::Searxng, _) => None,
            (_, None) => return Err(needs("`api_key`")),
            (_, Some(key)) => {
                let header = if kind == Kind::Tavily { format!("Bearer {key}") } else { key.to_owned() };
                let mut header = HeaderValue::from_str(&header)
                    .map_err(|_| needs("an `api_key` that is letters and digits"))?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        Ok(Self { kind, base, key })
    }

    /// What it is called in the settings.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Asks for at most so many results.
    pub(crate) async fn search(
        &self,
        http: &HttpClient,
        query: &str,
        max_results: u8,
    ) -> Result<Vec<SearchResult>, ToolError> {
        let response = self.request(http, query, max_results)?.timeout(TIMEOUT).send().await;
        let response = self.accepted(response.map_err(|error| self.failed(error.without_url()))?)?;
        let answer: Value = response.json().await.map_err(|error| self.failed(error.without_url()))?;
        let (place, text) = self.kind.results();
        let results = match answer.pointer(place).and_then(Value::as_array) {
            Some(results) => results.as_slice(),
            // Brave leaves the list out where it is empty.
            None if self.kind == Kind::Brave => &[],
            None => {
                let name = self.kind.name();
                return Err(unusable(format!("the answer is not {name}'s: is the `url` right?")));
            }
        };
        Ok(results.iter().filter_map(|result| read(result, text)).take(max_results.into()).collect())
    }

    fn request(&self, http: &HttpClient, query: &str, max_results: u8) -> Result<RequestBuilder, ToolError> {
        let url = self.base.join(self.kind.path())?;
        let request = match self.kind {
            Kind::Searxng => http.get(url).query(&[("q", query), ("format", "json")]),
            Kind::Brave => http.get(url).query(&[
                ("q", query),
                ("count", &max_results.to_string()),
                ("text_decorations", "false"),
            ]),
            Kind::Tavily => http.post(url).json(&json!({ "query": query, "max_results": max_results })),
        };
        Ok(match (&self.key, self.kind) {
            (Some(key), Kind::Brave) => request.header("X-Subscription-Token", key),
            (Some(key), _) => request.header("Authorization", key),
            (None, _) => request,
        })
    }

    fn accepted(&self, response: Response) -> Result<Response, ToolError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let why = match (status, self.kind) {
            (StatusCode::FORBIDDEN, Kind::Searxng) => {
                " (does its settings.yml have `json` under search.formats?)"
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => " (is the `api_key` right?)",
            (StatusCode::TOO_MANY_REQUESTS, _) => " (too many requests)",
            _ => "",
        };
        let error = unusable(format!("{} answered {status}{why}", self.kind.name()));
        let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Err(if passes { error.retryable() } else { error })
    }

    fn failed(&self, error: impl Error + Send + Sync + 'static) -> ToolError {
        let error = ToolError::from(error);
        let failed = unusable(format!("{}: {}", self.kind.name(), error.message()));
        if error.is_retryable() { failed.retryable() } else { failed }
    }
}

fn unusable(why: String) -> ToolError {
    ToolError::failed(why).with_feedback("The web cannot be searched now. Do without it, and say so.")
}

fn read(result: &Value, text: &str) -> Option<SearchResult> {
    let field = |name: &str| result.get(name).and_then(Value::as_str).map(toolrack_web::to_line);
    let url = result.get("url")?.as_str()?;
    let snippet = shorten(field(text).unwrap_or_default(), SNIPPET_CHARACTERS);
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    is_web.then(|| SearchResult { title: field("title").unwrap_or_default(), url: url.to_owned(), snippet })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(engine: &str, url: &str, api_key: &str) -> Result<Option<SearchEngine>, String> {
        SearchEngine::from_settings(Some(engine), Some(url), Some(api_key)).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_make_an_engine() {
        assert!(SearchEngine::from_settings(None, None, None).unwrap().is_none());
        assert!(settings("", " ", "").unwrap().is_none());
        let engine = settings("SearXNG", "http://user:secret@127.0.0.1:8888/searx", "").unwrap().unwrap();
        assert_eq!(engine.base.path(), "/searx/");
        assert!(!format!("{engine:?}").contains("secret"));
        let engine = settings("brave", "", "secret").unwrap().unwrap();
        assert_eq!(engine.base.host_str(), Some("api.search.brave.com"));
        assert!(!format!("{engine:?} {:?}", engine.key).contains("secret"));
        let engine = settings("tavily", "http://127.0.0.1:1", "secret").unwrap().unwrap();
        assert_eq!(engine.base.as_str(), "http://127.0.0.1:1/");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (engine, url, key, expected) in [
            (
                "google",
                "",
                "",
                "[search]: unknown engine `google`; the engines are searxng, brave and tavily",
            ),
            ("", "", "key", "[search]: `engine` is not set"),
            ("searxng", "", "", "[search]: searxng needs `url`, such as http://127.0.0.1:8888"),
            (
                "searxng",
                "localhost:8888",
                "",
                "[search]: searxng needs a `url` that begins with http:// or https://",
            ),
            ("brave", "", "", "[search]: brave needs `api_key`"),
            ("tavily", "", "a\nb", "[search]: tavily needs an `api_key` that is letters and digits"),
        ] {
            assert_eq!(settings(engine, url, key).unwrap_err(), expected);
        }
    }
}
