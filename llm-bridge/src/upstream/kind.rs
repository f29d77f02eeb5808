//! The kinds of model servers, a row each: how a server is recognised, and what is special about it.

use super::api::UpstreamApi;

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
    /// Where a request has a grammar in GBNF, as a path; `None` where it takes none.
    pub(crate) grammar: Option<&'static [&'static str]>,
    /// Whether it takes `tool_choice` and does not keep the model to it.
    pub(crate) ignores_tool_choice: bool,
    /// What the operator does when it refuses tools.
    pub(crate) for_tools: &'static str,
}

/// A sign of a kind.
#[derive(Debug)]
pub(super) enum Sign {
    /// The `owned_by` of a model in `GET /v1/models`.
    OwnedBy(&'static str),
    /// The beginning of the header `Server`.
    Server(&'static str),
    /// `GET path`, below the address without `/v1`, answers with JSON that has a text with this beginning at `pointer`.
    Json { path: &'static str, pointer: &'static str, begins: &'static str },
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

/// The kinds, in the order in which their signs are looked for: some servers imitate others, and stand before them.
pub const KINDS: [ServerKind; 8] = [
    // `koboldcpp.py`, which answers Ollama's `/api/version` too.
    ServerKind {
        id: "koboldcpp",
        name: "KoboldCpp",
        usual: "http://127.0.0.1:5001/v1",
        signs: &[
            Sign::OwnedBy("koboldcpp"),
            Sign::Json { path: "/api/extra/version", pointer: "/result", begins: "KoboldCpp" },
        ],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: Some(&["grammar"]),
        ignores_tool_choice: true,
        for_tools: "start KoboldCpp with --jinja --jinja-tools",
    },
    // `server/routes.go`; <https://docs.ollama.com/api-reference/get-version>.
    ServerKind {
        id: "ollama",
        name: "Ollama",
        usual: "http://127.0.0.1:11434/v1",
        signs: &[Sign::Json { path: "/api/version", pointer: "/version", begins: "" }],
        api: UpstreamApi::Ollama,
        list: ModelList::Ollama,
        grammar: None,
        ignores_tool_choice: true,
        for_tools: "`ollama show MODEL` has to list the capability `tools`; pull a model that has it",
    },
    // `llamafile/server/v1_models.cpp` and `client.cpp`. From 0.10 on it is llama.cpp's own server, and recognised as that.
    ServerKind {
        id: "llamafile",
        name: "llamafile",
        usual: "http://127.0.0.1:8080/v1",
        signs: &[Sign::Server("llamafile"), Sign::OwnedBy("llamafile")],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: Some(&["grammar"]),
        ignores_tool_choice: false,
        for_tools: "take llamafile 0.10 or newer; earlier ones have no tools",
    },
    // `tools/server/server-http.cpp` and `server-context.cpp`. It answers `/api/tags` as Ollama does, but not `/api/version`.
    ServerKind {
        id: "llama.cpp",
        name: "llama.cpp",
        usual: "http://127.0.0.1:8080/v1",
        signs: &[Sign::Server("llama.cpp"), Sign::OwnedBy("llamacpp")],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: Some(&["grammar"]),
        ignores_tool_choice: false,
        for_tools: "start llama-server with --jinja",
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
        api: UpstreamApi::OpenAi,
        list: ModelList::LmStudio,
        grammar: None,
        ignores_tool_choice: false,
        for_tools: "load a model that LM Studio shows as trained for tool use",
    },
    // `vllm/entrypoints/openai/engine/protocol.py`.
    ServerKind {
        id: "vllm",
        name: "vLLM",
        usual: "http://127.0.0.1:8000/v1",
        signs: &[Sign::OwnedBy("vllm")],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: Some(&["structured_outputs", "grammar"]),
        ignores_tool_choice: false,
        for_tools: "start vLLM with --enable-auto-tool-choice and the model's --tool-call-parser",
    },
    // `python/sglang/srt/entrypoints/openai/protocol.py`.
    ServerKind {
        id: "sglang",
        name: "SGLang",
        usual: "http://127.0.0.1:30000/v1",
        signs: &[Sign::OwnedBy("sglang")],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: Some(&["ebnf"]),
        ignores_tool_choice: false,
        for_tools: "start SGLang with the model's --tool-call-parser",
    },
    // `src-tauri/static/openapi.json`. Its models are run by llama.cpp, and are listed while they are loaded.
    ServerKind {
        id: "jan",
        name: "Jan",
        usual: "http://127.0.0.1:1337/v1",
        signs: &[Sign::Json { path: "/openapi.json", pointer: "/info/title", begins: "Jan " }],
        api: UpstreamApi::OpenAi,
        list: ModelList::OpenAi,
        grammar: None,
        ignores_tool_choice: false,
        for_tools: "switch on `tools` among the capabilities of the model in Jan",
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
    }
}
