//! Raw completion: a prompt in, the model's text out, with no template and no parser of the server between. Whoever asks has rendered
//! the prompt and reads calls and reasoning in the text.
//!
//! Formats: `tools/server/README.md` of llama.cpp (`POST /completion`), <https://docs.ollama.com/api/generate> (`raw`), and
//! <https://platform.openai.com/docs/api-reference/completions> with what vLLM (`vllm/entrypoints/openai/completion/protocol.py`) and SGLang
//! (`python/sglang/srt/entrypoints/openai/protocol.py`) add to it.

mod decode;
mod wire;

pub use wire::{CompletionForm, CompletionWire};
