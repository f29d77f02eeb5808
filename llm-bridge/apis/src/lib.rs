//! The formats of model APIs: canonical requests, messages and events, and around them a folder for each API. Nothing here sends,
//! runs or stores anything.
//!
//! A turn knows only the canonical types:
//!
//! ```text
//! client -> Front::decode -> Request -> Wire::request -> model server
//! client <- Encode::event <- TurnEvent <- (the turn) <- Piece <- Decode::push <- model server
//! ```
//!
//! # Adding an API
//!
//! An API is a folder, as [`openai`] and [`ollama`] show. It has those of these parts that it needs:
//!
//! | file | what is in it | who uses it |
//! |---|---|---|
//! | `mod.rs` | the API's documentation, and `const API: Provider` | |
//! | `tools.rs` | `RULES`, the rules of its tool definitions. An API that takes another's says `..openai::tools::RULES` | every API |
//! | `front.rs` | [`Front`], and [`CountTokens`] where the API counts the tokens of a request | clients speak it |
//! | `encode.rs` | two [`Encode`]s: one for streams, one for a whole answer | clients speak it |
//! | `models.rs` | [`ListModels`] | its SDKs list models at addresses that several APIs share |
//! | `wire.rs`, `decode.rs` | [`Wire`] and [`Decode`] | model servers speak it |
//!
//! Outside of the folder, in this crate: `pub mod` below, without which nothing of the folder is compiled, and in `provider.rs` a
//! variant of [`Provider`] and the arm with its `RULES`; its name is the variant's in lower case. The tests of definitions ask for what
//! the API refuses (`tests/apis/checker.rs`) and where it has a schema (`tests/apis/support.rs`), and the fuzz targets choose among fronts
//! and wires by name.
//!
//! In `llm-bridge`: a front is a row of `ENDPOINTS` in `src/server/apis/chat.rs`, and errors at its address and below it have its shape from then on; a
//! wire is a variant of `UpstreamApi` in `src/upstream/api.rs`, whose methods ask for what is special about it. Its name there is what `api` is in the
//! table `[upstream]` of `toolrack.toml`.
//!
//! What they keep to:
//!
//! - **Nothing is dropped in silence.** A front takes the fields that it knows out of a [`json::Object`]; what is left is
//!   [`Passing`], a part of an unknown type is [`Content::Opaque`], and both go back to the same API only. A wire lists everything
//!   else that it does not write as an [`Omission`]. What cannot be served is a [`BadRequest`] that names the field and says what to
//!   send.
//! - **One form of conversation.** [`Message`] says which. A call always has an id: where the API has none, [`CallIds`] makes it up.
//! - **The canonical types are open to all and exhaustive.** A kind of content, of piece or of event that is added is a new version, and
//!   the compiler shows each front, wire and turn where it is not written yet. Errors, reports of definitions and the shapes of
//!   [`ollama::models`] are `#[non_exhaustive]`: they are read, and grow.
//! - **Canonical fields never pass.** A writer writes the canonical fields and then the passing ones, and would write a field twice.
//!   Unknown fields inside a canonical object are left with [`json::Object::leave`] and merged again by the writer.
//! - **Bounded and linear.** The caller bounds a body's size; `json::Object` bounds its depth and counts, [`FrameDecoder`] the
//!   length of a frame. No input panics.
//! - **Answers are read leniently**, because local servers deviate: a field of the wrong type is taken as missing, and a broken
//!   event is a [`Failure`], never a gap. They are read in one pass into structs that borrow, and written once into the caller's
//!   buffer: a streamed token makes at most 8 allocations.
//! - **Errors keep the model server's words** ([`UpstreamDetails`]) and have the front's own shape.
//! - A [`Seal`] goes back to its own API only; an encoder of another leaves it out, and the turn keeps it.
//!
//! Tests to write, as in `tests/apis/chat.rs`: any request that the API can say survives wire and front, any answer front and wire; what
//! cannot be said is reported; a table of malformed bodies; the allocations of a token.
//!
//! # Tool definitions
//!
//! ```
//! use serde_json::json;
//! use toolrack_apis::{Definer, Provider, Subject};
//!
//! let schema = json!({"type": "object", "properties": {"days": {"type": "integer", "exclusiveMinimum": 0}}});
//! let tool = Subject::new("travel.weather", "Get the weather.", &schema);
//! let defined = Definer::new("openai".parse::<Provider>()?).definitions([tool]);
//! assert_eq!(defined.list[0]["function"]["name"], "travel_weather");
//! assert_eq!(defined.names.original("travel_weather"), Some("travel.weather"));
//! # Ok::<(), toolrack_apis::UnknownProvider>(())
//! ```

pub mod anthropic;
mod call_ids;
pub mod completion;
mod decoder;
mod definition;
mod event;
mod extension;
mod failure;
mod frame;
mod front;
pub mod gemini;
mod instructions;
pub mod json;
mod logprobs;
mod mcp {
    pub(crate) mod tools;
}
mod message;
mod models;
pub mod names;
mod number;
pub mod ollama;
mod opaque;
pub mod openai;
mod passing;
mod provider;
mod request;
pub mod responses;
mod results;
mod rules;
mod schema;
mod wire;

pub use call_ids::CallIds;
pub use definition::{Definer, Definitions, Hints, LeftOut, Loss, Subject, snapshot};
pub use event::{
    AskedQuestion, CallPiece, ClientCall, FinishReason, FinishedTool, Piece, ToolStatus, TurnEvent, Usage,
};
pub use extension::Extension;
pub use failure::{BadRequest, Failure, FailureKind, UpstreamDetails};
pub use frame::{Frame, FrameDecoder, FrameTooLong, Framing};
pub use front::{CountTokens, Decoded, Encode, Front, MAX_MODEL, check_model};
pub use instructions::{SystemPlace, join_instructions, join_users};
pub use message::{
    Call, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Reasoning, Role, Seal, SealKind,
    ToolResult,
};
pub use models::{ListModels, ListedModel};
pub use number::whole_number;
pub use passing::{Passing, RawJson};
pub use provider::{Provider, UnknownProvider};
pub use request::{
    ClientTool, Conversation, EarlierAnswer, Effort, Request, ResponseFormat, Sampling, SeenAnswer, Thinking,
    ToolChoice, ToolInput,
};
pub use results::move_media_behind_results;
pub use schema::remove_nulls;
pub use wire::{Decode, Encoded, Omission, Progress, Wire};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
