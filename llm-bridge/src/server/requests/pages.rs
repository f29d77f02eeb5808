//! Lists that may be long, in parts.

use axum::{extract::FromRequestParts, http::request::Parts};
use jiff::Timestamp;
use serde::Deserialize;

use super::{api_error::ApiError, query::QueryParameters};
use crate::server::openapi::Operation;

/// How many entries of such a list an answer has at most, and where nothing is said.
const MAX_PAGE: u16 = 200;

/// Where an entry stands in its list: behind all with an earlier time, and of those with the same behind smaller names.
pub(in crate::server) type Place = (Timestamp, String);

/// Which part of a list.
#[derive(Debug, Clone)]
pub(in crate::server) struct Page {
    after: Option<Place>,
    limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    after: Option<String>,
    limit: Option<u16>,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let QueryParameters(Parameters { after, limit }) =
            QueryParameters::from_request_parts(parts, state).await?;
        let limit = limit.unwrap_or(MAX_PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(ApiError::invalid("limit", format!("`limit` has to be 1 to {MAX_PAGE}")));
        }
        let place = |text: String| {
            let (time, name) = text.split_once('~').ok_or_else(wrong)?;
            Ok::<_, ApiError>((time.parse().map_err(|_| wrong())?, name.to_owned()))
        };
        Ok(Self { after: after.map(place).transpose()?, limit: limit.into() })
    }
}

impl Page {
    /// What an operation with pages says of them.
    pub(in crate::server) fn operation(operation: Operation) -> Operation {
        operation
            .query("after", "`next` of the list before.")
            .query_number("limit", "How many; by default as many as there may be.", 1, MAX_PAGE.into())
            .refuses(400, "`after` or `limit` is wrong (`invalid_request_error`).")
    }

    /// The name behind which a list by name goes on; the empty one is before all.
    pub(in crate::server) fn after_name(&self) -> &str {
        self.after.as_ref().map_or("", |(_, name)| name)
    }

    /// The number behind which a list by number goes on; 0 is before all.
    pub(in crate::server) fn after_number(&self) -> Result<i64, ApiError> {
        self.after.as_ref().map_or(Ok(0), |(_, name)| name.parse().map_err(|_| wrong()))
    }

    /// How many entries are read for it: one more says whether there are more.
    pub(in crate::server) fn to_read(&self) -> usize {
        self.limit + 1
    }

    /// This part of a list, and `after` of the next one, where there is more.
    pub(in crate::server) fn of<T>(
        &self,
        mut list: Vec<T>,
        place: impl Fn(&T) -> Place,
    ) -> (Vec<T>, Option<String>) {
        if let Some(after) = &self.after {
            list.retain(|entry| place(entry) > *after);
        }
        list.sort_by_cached_key(&place);
        let is_more = list.len() > self.limit;
        list.truncate(self.limit);
        let next = list.last().filter(|_| is_more).map(|last| {
            let (time, name) = place(last);
            format!("{time}~{name}")
        });
        (list, next)
    }
}

fn wrong() -> ApiError {
    ApiError::invalid("after", "`after` has to be `next` of the list before")
}

/// The place in a list by name.
pub(in crate::server) fn named(name: &str) -> Place {
    (Timestamp::UNIX_EPOCH, name.to_owned())
}

/// The place in a list by number.
pub(in crate::server) fn numbered(number: i64) -> Place {
    named(&format!("{number:019}"))
}
