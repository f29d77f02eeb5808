use registry_core::prelude::*;
use toolrack_http::HttpClient;

use crate::search_engine::{SearchEngine, SearchResult};

/// What was found.
#[output]
#[derive(Debug)]
struct SearchResults {
    /// Best first; empty where nothing was found.
    results: Vec<SearchResult>,
}

/// Search the web. Use it for current events and for what you do not know. Returns titles, addresses and snippets of pages.
///
/// On once the host provides a [`SearchEngine`]: SearXNG, Brave or Tavily.
#[tool(
    title = "Web search",
    version = "1.0.0",
    tags = ["web", "search"],
    reads = untrusted,
    sends = outside,
    cost = Cost::Cheap,
    timeout = secs(12),
    example = "Search the web for the newest release of SQLite." => {"query": "SQLite release"}
)]
async fn web_search(
    ctx: &ToolContext,
    http: Resource<HttpClient>,
    engine: Resource<SearchEngine>,
    /// Search query, as for a search engine.
    #[arg(length = 1..=400)]
    query: &str,
    /// Maximum number of results.
    #[arg(default = 5, range = 1..=20)]
    max_results: u8,
) -> Result<SearchResults, ToolError> {
    ctx.status(format!("Searching the web for \"{query}\""));
    Ok(SearchResults { results: engine.search(&http, query, max_results).await? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::serve;

    async fn search(engine: SearchEngine) -> Result<Vec<SearchResult>, ToolError> {
        let http = Resource::new(HttpClient::new()?);
        let found =
            web_search(&ToolContext::default(), http, Resource::new(engine), "rust & tools", 2).await?;
        Ok(found.results)
    }

    fn engine(name: &str, url: &str) -> SearchEngine {
        SearchEngine::from_settings(Some(name), Some(url), Some("sesame")).unwrap().unwrap()
    }

    fn found(title: &str, url: &str, snippet: &str) -> SearchResult {
        SearchResult { title: title.into(), url: url.into(), snippet: snippet.into() }
    }

    #[tokio::test]
    async fn searxng_is_asked_for_json() {
        let (url, requests) = serve(
            "200 OK",
            "application/json",
            r#"{"query":"rust & tools","results":[
                {"title":"One","url":"https://one.example/","content":"First.","score":2.0},
                {"title":"No page","url":"magnet:?x","content":""},
                {"title":"Two","url":"https://two.example/","content":null},
                {"title":"Three","url":"https://three.example/"}]}"#,
        )
        .await;
        let results = search(engine("searxng", &format!("{url}searx"))).await.unwrap();
        assert_eq!(
            results,
            [found("One", "https://one.example/", "First."), found("Two", "https://two.example/", "")]
        );
        let request = requests.lock().unwrap().concat();
        assert!(request.starts_with("GET /searx/search?q=rust+%26+tools&format=json HTTP/1.1"), "{request}");
        assert!(!request.contains("sesame"), "{request}");
    }

    #[tokio::test]
    async fn brave_gets_its_token() {
        let (url, requests) = serve(
            "200 OK",
            "application/json",
            r#"{"web":{"results":[{"title":"Tom &amp; Jerry","url":"https://one.example/","description":"It&#x27;s <strong>one</strong>."}]}}"#,
        )
        .await;
        let results = search(engine("brave", &url)).await.unwrap();
        assert_eq!(results, [found("Tom & Jerry", "https://one.example/", "It's one.")]);
        let request = requests.lock().unwrap().concat();
        assert!(request.starts_with("GET /res/v1/web/search?q=rust+%26+tools&count=2"), "{request}");
        assert!(request.to_lowercase().contains("x-subscription-token: sesame"), "{request}");
    }

    #[tokio::test]
    async fn tavily_gets_a_bearer_token() {
        let body = format!(
            r#"{{"results":[{{"title":"One","url":"https://one.example/","content":"{}"}}]}}"#,
            "x".repeat(900)
        );
        let (url, requests) = serve("200 OK", "application/json", &body).await;
        let results = search(engine("tavily", &url)).await.unwrap();
        assert_eq!(results[0].snippet, format!("{}…", "x".repeat(500)));
        let request = requests.lock().unwrap().concat();
        assert!(request.starts_with("POST /search HTTP/1.1"), "{request}");
        assert!(request.to_lowercase().contains("authorization: bearer sesame"), "{request}");
        assert!(request.contains(r#""query":"rust & tools""#), "{request}");
    }

    #[tokio::test]
    async fn nothing_found_is_no_error() {
        let (url, _) = serve("200 OK", "application/json", r#"{"type":"search"}"#).await;
        assert_eq!(search(engine("brave", &url)).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_refusal_says_why_and_keeps_the_key() {
        for (name, status, expected, retryable) in [
            (
                "searxng",
                "403 Forbidden",
                "searxng answered 403 Forbidden (does its settings.yml have `json` under search.formats?)",
                false,
            ),
            ("brave", "401 Unauthorized", "brave answered 401 Unauthorized (is the `api_key` right?)", false),
            (
                "tavily",
                "429 Too Many Requests",
                "tavily answered 429 Too Many Requests (too many requests)",
                true,
            ),
            ("brave", "502 Bad Gateway", "brave answered 502 Bad Gateway", true),
        ] {
            let (url, _) = serve(status, "text/plain", "sesame").await;
            let error = search(engine(name, &url)).await.unwrap_err();
            assert_eq!((error.message(), error.is_retryable()), (expected, retryable));
            assert!(!error.feedback().contains("api_key"));
        }
    }

    #[tokio::test]
    async fn what_is_not_json_or_not_there_is_said() {
        let (url, _) = serve("200 OK", "text/html", "<html>").await;
        let error = search(engine("searxng", &url)).await.unwrap_err();
        assert!(error.message().starts_with("searxng: error decoding response body"), "{error}");
        let (url, _) = serve("200 OK", "application/json", "{}").await;
        let error = search(engine("tavily", &url)).await.unwrap_err();
        assert_eq!(error.message(), "the answer is not tavily's: is the `url` right?");
        let error = search(engine("searxng", "http://user:secret@127.0.0.1:1/")).await.unwrap_err();
        assert!(error.is_retryable());
        assert!(!format!("{error} {error:?} {}", error.feedback()).contains("secret"), "{error}");
    }
}
