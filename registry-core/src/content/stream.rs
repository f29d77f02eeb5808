//! Results that come part by part.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
};

use futures_core::Stream;
use serde_json::Value;

use super::{
    Content, Part,
    bounds::{MAX_BYTES, MAX_PARTS, too_large, too_many},
};
use crate::{
    context::ToolContext,
    result::{IntoToolError, ToolError, ToolResult},
};

/// What the stream of a tool may give: a part of the result, a piece of its text, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a tool cannot stream `{Self}`",
    label = "not a part of a result",
    note = "stream `Content`, `Image`, `Audio`, `File`, `Table`, `Markdown`, a `String` (a piece of a text), or a `Result` of one of these"
)]
pub trait Streamed {
    /// The part.
    ///
    /// # Errors
    /// With which the call ends. What was shown before stays shown.
    fn into_part(self) -> Result<StreamedPart, ToolError>;
}

/// What a stream has given.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamedPart {
    /// The next piece of the text.
    Text(String),
    /// A part.
    Part(Content),
}

#[diagnostic::do_not_recommend]
impl<P: Part> Streamed for P {
    fn into_part(self) -> Result<StreamedPart, ToolError> {
        Ok(StreamedPart::Part(self.into()))
    }
}

impl Streamed for String {
    fn into_part(self) -> Result<StreamedPart, ToolError> {
        Ok(StreamedPart::Text(self))
    }
}

impl Streamed for &'static str {
    fn into_part(self) -> Result<StreamedPart, ToolError> {
        Ok(StreamedPart::Text(self.to_owned()))
    }
}

impl<T: Streamed, E: IntoToolError> Streamed for Result<T, E> {
    fn into_part(self) -> Result<StreamedPart, ToolError> {
        self.map_err(E::into_tool_error)?.into_part()
    }
}

/// Shows each part as it comes, and gives all of them.
///
/// # Errors
/// The stream's own, and where there are too many parts or bytes.
pub(crate) async fn collect<T>(
    context: &ToolContext,
    stream: impl Stream<Item = T>,
    into_part: fn(T) -> Result<StreamedPart, ToolError>,
) -> Result<ToolResult, ToolError> {
    let mut stream = pin!(stream);
    let (mut text, mut content, mut bytes) = (None::<String>, Vec::new(), 0_usize);
    while let Some(part) = next(stream.as_mut()).await {
        // Of a stream that is always ready, too, the timeout has to be seen.
        tokio::task::consume_budget().await;
        let part = match into_part(part)? {
            StreamedPart::Text(piece) => {
                text.get_or_insert_default().push_str(&piece);
                Content::Text { text: piece }
            }
            StreamedPart::Part(part) => {
                content.push(part.clone());
                part
            }
        };
        // One byte for each, so that there is no end to empty ones.
        bytes = bytes.saturating_add(part.size() + 1);
        if bytes > MAX_BYTES {
            return Err(too_large());
        }
        if content.len() > MAX_PARTS {
            return Err(too_many());
        }
        context.show(part);
    }
    Ok(ToolResult { content, ..ToolResult::new(text.map_or(Value::Null, Value::String)) })
}

impl ToolResult {
    /// The result of a stream whose parts are shown as they come, for a [`Handler`](crate::Handler) that is written by hand. A function with
    /// `#[tool]` returns the stream itself.
    ///
    /// # Errors
    /// The stream's own, and where there are more than 1000 parts or 32 MiB.
    pub async fn of_stream<T: Streamed>(
        context: &ToolContext,
        stream: impl Stream<Item = T>,
    ) -> Result<Self, ToolError> {
        collect(context, stream, T::into_part).await
    }
}

async fn next<S: Stream>(mut stream: Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}
