use registry_core::prelude::*;
use toolrack_http::HttpClient;

use crate::search_engine::{SearchEngine, SearchResult};

const RESULTS: u8 = 5;

/// Research a topic on the web. Use it when the user asks for research; at most 3 times a day. Returns a digest of what was found; the user sees its sources.
///
/// On once the host provides a [`SearchEngine`], as `web_search` is.
#[tool(
    title = "Research a topic",
    version = "1.0.0",
    tags = ["web", "search"],
    reads = untrusted,
    sends = outside,
    cost = Cost::Cheap,
    daily_limit = 3,
    timeout = secs(12),
    text_tag = TextTag::new("RESEARCH").example("RESEARCH: [search query]"),
    example = "Research how heat pumps work in cold winters." => {"query": "heat pumps cold"}
)]
async fn research(
    ctx: &ToolContext,
    http: Resource<HttpClient>,
    engine: Resource<SearchEngine>,
    /// Search query, as for a search engine.
    #[arg(length = 1..=400)]
    query: &str,
) -> Result<ToolResult, ToolError> {
    ctx.status(format!("Researching \"{query}\""));
    let found = engine.search(&http, query, RESULTS).await?;
    let (digest, sources) = match found.as_slice() {
        [] => (
            "Nothing was found. Say so, or try other words.".to_owned(),
            format!("Nothing found for \"{query}\"."),
        ),
        found => (list(found, digest), format!("Sources for \"{query}\":\n{}", list(found, source))),
    };
    Ok(ToolResult::new(digest)
        .with_message(sources)
        .with_side_effect(format!("searched:{}:{query}", engine.name()))
        .with_audit("results", found.len()))
}

fn list(found: &[SearchResult], entry: impl Fn(&SearchResult) -> String) -> String {
    let lines: Vec<String> =
        found.iter().zip(1..).map(|(result, number)| format!("{number}. {}", entry(result))).collect();
    lines.join("\n")
}

fn source(result: &SearchResult) -> String {
    format!("{} {}", result.title, result.url).trim_start().to_owned()
}

fn digest(result: &SearchResult) -> String {
    format!("{}\n   {}", source(result), result.snippet).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::serve;

    async fn researched(answer: &str) -> ToolResult {
        let (url, requests) = serve("200 OK", "application/json", answer).await;
        let http = Resource::new(HttpClient::new().unwrap());
        let engine = Resource::new(SearchEngine::searxng(&url).unwrap());
        let result = research(&ToolContext::default(), http, engine, "why water boils").await.unwrap();
        assert_eq!(requests.lock().unwrap().len(), 1);
        assert_eq!(result.side_effects, ["searched:searxng:why water boils"]);
        result
    }

    #[tokio::test]
    async fn t8_research_gives_the_model_a_digest_and_the_user_the_sources() {
        let result = researched(
            r#"{"results":[
                {"title":"One","url":"https://one.example/","content":"Heat\nrises."},
                {"title":"","url":"https://two.example/","content":""}]}"#,
        )
        .await;
        assert_eq!(
            result.for_model(),
            "1. One https://one.example/\n   Heat rises.\n2. https://two.example/"
        );
        assert_eq!(
            result.message.as_deref(),
            Some("Sources for \"why water boils\":\n1. One https://one.example/\n2. https://two.example/")
        );
        assert_eq!(result.audit["results"], 2);
    }

    #[tokio::test]
    async fn t8_research_without_results_says_so() {
        let result = researched(r#"{"results":[]}"#).await;
        assert!(result.for_model().starts_with("Nothing was found."));
        assert_eq!(result.message.as_deref(), Some("Nothing found for \"why water boils\"."));
    }

    #[tokio::test]
    async fn t8_research_that_fails_is_no_result() {
        let (url, _) = serve("503 Service Unavailable", "text/plain", "").await;
        let http = Resource::new(HttpClient::new().unwrap());
        let engine = Resource::new(SearchEngine::searxng(&url).unwrap());
        let error = research(&ToolContext::default(), http, engine, "x").await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert_eq!(error.feedback(), "The web cannot be searched now. Do without it, and say so.");
    }
}
