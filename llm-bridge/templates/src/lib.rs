//! Renders the chat templates of language models as their makers' tools do, so that a prompt is the same to the byte.
//!
//! A chat template is a program in Jinja that comes with a model and writes the prompt of a conversation. The reference is
//! `apply_chat_template` of `transformers` (`utils/chat_template_utils.py`), whose environment model makers write for: Jinja2 with
//! `trim_blocks` and `lstrip_blocks`, loop controls, `{% generation %}`, `raise_exception`, `strftime_now`, its own `tojson`, and Python's
//! methods of texts, lists and dictionaries.
//!
//! ```
//! use serde_json::json;
//! use toolrack_templates::{Conversation, Template};
//!
//! let template = Template::new("{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}")?;
//! let messages = [json!({"role": "user", "content": " Hello. "})];
//! assert_eq!(template.render(&Conversation::new(&messages))?, "user: Hello.\n");
//! # Ok::<(), toolrack_templates::TemplateError>(())
//! ```
//!
//! Templates are programs of strangers. Each render has a bound on its work (with the memory that it takes), its depth and its output. It may
//! take a second of a processor all the same, and belongs on a thread that may block.
//!
//! What is different from the reference: an attribute that is missing is never a method of Python (`schema.items` without parentheses),
//! and templates do not load other templates.

mod bounds;
mod error;
mod gguf;
mod json;
mod output;
mod python;
mod source;
mod template;

pub use error::TemplateError;
pub use gguf::GgufTemplate;
pub use template::{Conversation, MAX_OUTPUT, MAX_SOURCE, Template};
