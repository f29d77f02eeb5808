//! `GET /api/chats`: a user's chats, and those that have some words.

use std::sync::Arc;

use axum::{
    Json,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use registry_core::store::{ChatQuery, FoundChat, StoreErrorKind, fold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Access, Head};
use crate::server::{
    openapi::Operation,
    requests::{api_error::ApiError, query::QueryParameters},
};

/// How many chats are listed by default, and at most.
const USUAL: usize = 50;
const MAX_LISTED: usize = 100;
/// How many words are looked for, and how long they are at most, in bytes.
const MAX_WORDS: usize = 8;
const MAX_SEARCH: usize = 1000;
/// How much stands before and behind the words that were found, in bytes.
const BEFORE: usize = 60;
const BEHIND: usize = 140;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    #[serde(default)]
    search: Option<String>,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// A chat in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListedChat")]
struct Listed {
    #[serde(flatten)]
    head: Head,
    /// The last message that has the words of the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Found>,
}

/// Where the words of a search stand.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FoundInChat")]
struct Found {
    /// The message's id.
    message: String,
    /// The first of the words, with what stands around it.
    text: String,
}

/// Some of the chats.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChatList")]
pub(super) struct List {
    chats: Vec<Listed>,
    /// What goes into `after` for those that follow; `null` at the end.
    next: Option<String>,
}

pub(super) fn operation() -> Operation {
    Operation::new(Method::GET, "Chats", "list_chats", "The user's chats")
        .details("Pinned chats come first, then those that were used last.")
        .query("search", "Only chats that have these words, up to 8, in their titles or in one message.")
        .query("after", "`next` of the list before.")
        .query("limit", "How many: 1 to 100, by default 50.")
        .answers::<List>(200, "The chats.")
        .refuses(400, "`search`, `after` or `limit` is wrong (`invalid_request_error`).")
        .refuses(404, "This server keeps none (`chats_disabled`).")
}

fn cursor(text: &str) -> Option<(bool, Timestamp, String)> {
    let mut parts = text.splitn(3, '~');
    let pinned = parts.next()? == "1";
    let updated_at = parts.next()?.parse().ok()?;
    Some((pinned, updated_at, parts.next()?.to_owned()))
}

pub(super) async fn list(
    access: Access,
    QueryParameters(Parameters { search, after, limit }): QueryParameters<Parameters>,
) -> Result<Json<List>, ApiError> {
    let limit = limit.unwrap_or(USUAL);
    if !(1..=MAX_LISTED).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` has to be 1 to {MAX_LISTED}")));
    }
    let wrong = || ApiError::invalid("after", "`after` has to be `next` of the list before");
    let after = after.map(|after| cursor(&after).ok_or_else(wrong)).transpose()?;
    let search = search.unwrap_or_default();
    let words: Vec<String> = search.split_whitespace().map(fold).collect();
    if words.len() > MAX_WORDS || search.len() > MAX_SEARCH {
        let message = format!("`search` has more than {MAX_WORDS} words or {MAX_SEARCH} bytes; send fewer");
        return Err(ApiError::invalid("search", message));
    }
    // One more says whether there are any behind.
    let query = ChatQuery { words, after, limit: limit + 1 };
    let mut found = access.chats(&query).await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| is_more)
        .map(|FoundChat { chat, .. }| format!("{}~{}~{}", u8::from(chat.pinned), chat.updated_at, chat.id));
    let since = access.since();
    let listed = |FoundChat { chat, message }: FoundChat| Listed {
        head: Head::of(&chat, since),
        found: message.map(|(message, text)| Found { message, text: around(&text, &query.words) }),
    };
    Ok(Json(List { chats: found.into_iter().map(listed).collect(), next }))
}

impl Access {
    /// The chats that are asked for. One search of a user is made at once: it has its place until it ends, also where its client is gone.
    async fn chats(&self, query: &ChatQuery) -> Result<Vec<FoundChat>, ApiError> {
        let (store, query) = (Arc::clone(&self.store), query.clone());
        let (tenant, user) = (self.tenant.clone(), self.user.clone());
        if query.words.is_empty() {
            let size = |found: &Vec<FoundChat>| found.iter().map(|found| found.chat.title.len()).sum();
            return self
                .identity
                .read(async move { store.chats((&tenant, &user), &query).await }, size)
                .await;
        }
        let search = async move { store.chats((&tenant, &user), &query).await };
        let found = self.turns.searching.task(self.owner(), search).await;
        let failed = |_| ApiError::internal("the search failed; see the server's log");
        found.map_err(failed)?.map_err(|error| match error.kind() {
            StoreErrorKind::Unavailable => {
                tracing::warn!(cause = %error, "search_failed");
                let message = "the server's store did not search in time; look for fewer words, or try again";
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message)
            }
            _ => error.into(),
        })
    }
}

/// The first of the words in a text, with what stands around it.
fn around(text: &str, words: &[String]) -> String {
    // Some letters are longer in lower case; where they are, the place is only near.
    let folded = fold(text);
    let at = words.iter().filter_map(|word| folded.find(word.as_str())).min().unwrap_or(0).min(text.len());
    let begin = text.ceil_char_boundary(at.saturating_sub(BEFORE));
    let end = text.floor_char_boundary(at.saturating_add(BEHIND));
    let middle = text.get(begin..end).unwrap_or_default();
    let words = middle.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, behind) = (if begin > 0 { "… " } else { "" }, if end < text.len() { " …" } else { "" });
    format!("{before}{words}{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b17_what_is_found_is_shown_with_what_stands_around() {
        let words = ["tee".to_owned()];
        assert_eq!(around("Grüner\n TEE, bitte", &words), "Grüner TEE, bitte");
        let long = format!("{}Tee{}", "ü ".repeat(300), " ß".repeat(300));
        let shown = around(&long, &words);
        assert!(shown.starts_with("… ü") && shown.contains("Tee") && shown.ends_with("ß …"), "{shown}");
        assert!(around(&"İ".repeat(500), &["x".to_owned()]).len() < 300);
        assert_eq!(
            cursor("1~2026-11-24T20:00:00Z~chat_1"),
            Some((true, "2026-11-24T20:00:00Z".parse().unwrap(), "chat_1".into()))
        );
        assert_eq!(cursor("yesterday"), None);
    }
}
