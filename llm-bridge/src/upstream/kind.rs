//! The kinds of model servers, a row each: how a server is recognised, and what is special about it.

use toolrack_apis::completion::CompletionForm;

use super::{api::UpstreamApi, via::VIA};

/// A kind of model server.
#[derive(Debug)]
pub struct ServerKind {
    /// Its name in lower case, as in `/healthz`.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The base address where it listens by default.
    pub usual: &'static str,
    /// What tells it from others; one sign is enough.
    pub(super) signs: &'static [Sign],
    /// The API it is asked in.
    pub(super) api: UpstreamApi,
    /// How it lists its models.
    pub(super) list: ModelList,
    /// Where it says how large a model's context is.
    pub(super) context: ContextSource,
    /// Where a request has a grammar in GBNF, as a path; `None` where it takes none.
    pub(crate) grammar: Option<&'static [&'static str]>,
    /// How a request has a grammar that holds from the opening of a call on; `None` where it takes none.
    pub(crate) triggered: Option<TriggeredForm>,
    /// How it completes prompts; `None` where it does not, or not with special tokens.
    pub(crate) completion: Option<CompletionForm>,
    /// Whether it takes `tool_choice` and does not keep the model to it.
    pub(crate) ignores_tool_choice: bool,
    /// Whether it hands `chat_template_kwargs` to the model's chat template.
    pub(crate) template_arguments: bool,
    /// Whether it takes documents in messages.
    pub(crate) takes_files: bool,
    /// What lets it go on with an answer that a conversation ends with, where it would begin another.
    pub(crate) continues: &'static [(&'static str, bool)],
    /// What the operator does when it refuses tools.
    pub(crate) for_tools: &'static str,
    /// What the operator does when its context is too small.
    pub(crate) for_context: &'static str,
}

/// A sign of a kind.
#[derive(Debug)]
pub(super) enum Sign {
    /// The `owned_by` of a model in `GET /v1/models`.
    OwnedBy(&'static str),
    /// A header of the reply to `GET /v1/models`, and how it begins.
    Header { name: &'static str, begins: &'static str },
    /// `GET path`, below the address without `/v1`, answers with JSON that has a text with this beginning at `pointer`.
    Json { path: &'static str, pointer: &'static str, begins: &'static str },
}

/// How a request has a grammar that begins to hold with a text that the model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TriggeredForm {
    /// `grammar_lazy` and `grammar_triggers` beside `grammar`, for completions only: in chats the server sets them for tools of its own.
    LlamaCpp,
    /// A structural tag as text in `structured_outputs`: <https://docs.vllm.ai/en/latest/features/structured_outputs/>.
    Vllm,
    /// A structural tag as `response_format`: <https://docs.sglang.ai/advanced_features/structured_outputs.html>.
    SgLang,
}

/// How a server lists its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelList {
    /// `GET /v1/models`, which does not say what a model does.
    OpenAi,
    /// `GET /api/v0/models` of LM Studio, with the `type` of each: <https://lmstudio.ai/docs/api/rest-api>.
    LmStudio,
    /// `GET /api/tags` of Ollama, with `details.family` and, in newer versions, `capabilities`: <https://docs.ollama.com/api/tags>.
    Ollama,
}

/// Where a server says how large the context of a model is, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextSource {
    /// In the model's entry of its list: `max_model_len` and others.
    List,
    /// As a number at `pointer` of `GET path`, below the address without `/v1`, for the model that is loaded. A server that has several
    /// takes the model's name in the query.
    Json { path: &'static str, pointer: &'static str },
    /// Of a model that is loaded in Ollama's `GET /api/ps`, of others in `POST /api/show`: <https://docs.ollama.com/api/ps>.
    Ollama,
}

/// The size of one slot of llama.cpp's server, which is what a request has: `tools/server/README.md`.
const LLAMA_CPP: ContextSource =
    ContextSource::Json { path: "/props", pointer: "/default_generation_settings/n_ctx" };

/// The id of a server like this one.
pub(super) const TOOLRACK: &str = "toolrack";

/// What a server is like of which nothing else is said: it speaks OpenAI's API, and no more.
const LIKE_OPENAI: ServerKind = ServerKind {
    id: "",
    name: "",
    usual: "",
    signs: &[],
    api: UpstreamApi::OpenAi,
    list: ModelList::OpenAi,
    context: ContextSource::List,
    grammar: None,
    triggered: None,
    completion: None,
    ignores_tool_choice: false,
    template_arguments: false,
    takes_files: false,
    continues: &[],
    for_tools: "",
    for_context: "",
};

/// The kinds, in the order in which their signs are looked for: some servers imitate others, and stand before them.
pub const KINDS: [ServerKind; 9] = [
    // It lists the models of its own model server as they are, and passes `/api/version` on.
    ServerKind {
        id: TOOLRACK,
        name: "Toolrack",
        usual: "http://127.0.0.1:7331/v1",
        signs: &[Sign::Header { name: VIA, begins: "" }],
        // It reads them for its own model server.
        takes_files: true,
        for_tools: "see the log of that Toolrack, which describes tools to its model where its model server refuses them",
        for_context: "give the model server behind that Toolrack a larger context",
        ..LIKE_OPENAI
    },
    // `koboldcpp.py`, which answers Ollama's `/api/version` too.
    ServerKind {
        id: "koboldcpp",
        name: "KoboldCpp",
        usual: "http://127.0.0.1:5001/v1",
        signs: &[
            Sign::OwnedBy("koboldcpp"),
            Sign::Json { path: "/api/extra/version", pointer: "/result", begins: "KoboldCpp" },
        ],
        context: ContextSource::Json { path: "/api/extra/true_max_context_length", pointer: "/value" },
        grammar: Some(&["grammar"]),
        ignores_tool_choice: true,
        for_tools: "start KoboldCpp with --jinja --jinja-tools",
        for_context: "start KoboldCpp with a larger --contextsize",
        ..LIKE_OPENAI
    },
    // `server/routes.go`; <https://docs.ollama.com/api-reference/get-version>.
    ServerKind {
        id: "ollama",
        name: "Ollama",
        usual: "http://127.0.0.1:11434/v1",
        signs: &[Sign::Json { path: "/api/version", pointer: "/version", begins: "" }],
        api: UpstreamApi::Ollama,
        list: ModelList::Ollama,
        context: ContextSource::Ollama,
        completion: Some(CompletionForm::Ollama),
        ignores_tool_choice: true,
        for_tools: "`ollama show MODEL` has to list the capability `tools`; pull a model that has it",
        for_context: "raise `num_ctx` or `max_num_ctx` of the upstream",
        ..LIKE_OPENAI
    },
    // `llamafile/server/v1_models.cpp` and `client.cpp`. From 0.10 on it is llama.cpp's own server, and recognised as that.
    ServerKind {
        id: "llamafile",
        name: "llamafile",
        usual: "http://127.0.0.1:8080/v1",
        signs: &[Sign::Header { name: "server", begins: "llamafile" }, Sign::OwnedBy("llamafile")],
        context: LLAMA_CPP,
        grammar: Some(&["grammar"]),
        completion: Some(CompletionForm::LlamaCpp),
        for_tools: "take llamafile 0.10 or newer; earlier ones have no tools",
        for_context: "start llamafile with a larger --ctx-size",
        ..LIKE_OPENAI
    },
    // `tools/server/server-http.cpp` and `server-context.cpp`. It answers `/api/tags` as Ollama does, but not `/api/version`.
    ServerKind {
        id: "llama.cpp",
        name: "llama.cpp",
        usual: "http://127.0.0.1:8080/v1",
        signs: &[Sign::Header { name: "server", begins: "llama.cpp" }, Sign::OwnedBy("llamacpp")],
        context: LLAMA_CPP,
        grammar: Some(&["grammar"]),
        triggered: Some(TriggeredForm::LlamaCpp),
        completion: Some(CompletionForm::LlamaCpp),
        template_arguments: true,
        for_tools: "start llama-server with --jinja",
        for_context: "start llama-server with a larger --ctx-size, which its --parallel slots share",
        ..LIKE_OPENAI
    },
    // <https://lmstudio.ai/docs/api/rest-api>. It answers every path with 200.
    ServerKind {
        id: "lmstudio",
        name: "LM Studio",
        usual: "http://127.0.0.1:1234/v1",
        signs: &[
            Sign::OwnedBy("organization_owner"),
            Sign::Json { path: "/api/v0/models", pointer: "/data/0/type", begins: "" },
        ],
        list: ModelList::LmStudio,
        completion: Some(CompletionForm::OpenAi),
        for_tools: "load a model that LM Studio shows as trained for tool use",
        for_context: "load the model with a larger context length in LM Studio",
        ..LIKE_OPENAI
    },
    // `vllm/entrypoints/openai/engine/protocol.py`.
    ServerKind {
        id: "vllm",
        name: "vLLM",
        usual: "http://127.0.0.1:8000/v1",
        signs: &[Sign::OwnedBy("vllm")],
        grammar: Some(&["structured_outputs", "grammar"]),
        triggered: Some(TriggeredForm::Vllm),
        completion: Some(CompletionForm::Vllm),
        template_arguments: true,
        continues: &[("continue_final_message", true), ("add_generation_prompt", false)],
        for_tools: "start vLLM with --enable-auto-tool-choice and the model's --tool-call-parser",
        for_context: "start vLLM with a larger --max-model-len",
        ..LIKE_OPENAI
    },
    // `python/sglang/srt/entrypoints/openai/protocol.py`.
    ServerKind {
        id: "sglang",
        name: "SGLang",
        usual: "http://127.0.0.1:30000/v1",
        signs: &[Sign::OwnedBy("sglang")],
        grammar: Some(&["ebnf"]),
        triggered: Some(TriggeredForm::SgLang),
        completion: Some(CompletionForm::SgLang),
        template_arguments: true,
        continues: &[("continue_final_message", true)],
        for_tools: "start SGLang with the model's --tool-call-parser",
        for_context: "start SGLang with a larger --context-length",
        ..LIKE_OPENAI
    },
    // `src-tauri/static/openapi.json`. Its models are run by llama.cpp, and are listed while they are loaded.
    ServerKind {
        id: "jan",
        name: "Jan",
        usual: "http://127.0.0.1:1337/v1",
        signs: &[Sign::Json { path: "/openapi.json", pointer: "/info/title", begins: "Jan " }],
        for_tools: "switch on `tools` among the capabilities of the model in Jan",
        for_context: "give the model a larger context size in Jan",
        ..LIKE_OPENAI
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_told_apart_by_their_names() {
        for (at, kind) in KINDS.iter().enumerate() {
            assert!(KINDS.iter().skip(at + 1).all(|other| other.id != kind.id), "{}", kind.id);
            assert!(!kind.signs.is_empty() && kind.usual.ends_with("/v1"), "{}", kind.id);
        }
        let place = |id| KINDS.iter().position(|kind| kind.id == id);
        assert!(place("koboldcpp") < place("ollama"), "KoboldCpp imitates Ollama");
        assert_eq!(place(TOOLRACK), Some(0), "it shows what stands behind it");
    }
}
