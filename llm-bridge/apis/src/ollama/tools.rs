//! Tool definitions of Ollama's own API, `POST /api/chat`: <https://docs.ollama.com/api/chat>.
//!
//! They have the shape of OpenAI's. The server reads schemas into a struct (`api/types.go` of <https://github.com/ollama/ollama>, version 0.33)
//! and drops what has no field there before the model sees it: of the parameters it keeps `type`, `$defs`, `items`, `required`
//! and `properties`; of a property `anyOf`, `type`, `items`, `description`, `enum`, `properties` and `required`. `$ref` is
//! dropped, so references are inlined. Ollama enforces no rule for names; these are the names that every provider accepts, which
//! models know.

use crate::{
    names::NameRule,
    openai,
    rules::{Form, Keywords, Rules},
};

pub(crate) const RULES: Rules = Rules {
    name: NameRule::COMMON,
    max_description: None,
    max_tools: None,
    forms: &[Form {
        field: "parameters",
        keywords: Keywords::Only(&[
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
        ]),
        at_root: Keywords::Only(&["type", "required", "properties"]),
        references: false,
        ..Form::JSON_SCHEMA
    }],
    strict: None,
    ..openai::tools::RULES
};
