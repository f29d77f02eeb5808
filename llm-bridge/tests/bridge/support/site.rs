//! What a scripted model server has besides the chat: the pages by which the kinds of servers are told apart.

use serde_json::{Value, json};

/// The pages of a server.
#[derive(Clone)]
pub struct Site {
    /// The header `Server`.
    pub server: &'static str,
    /// The paths that are there, and what they answer.
    pub pages: Vec<(&'static str, Value)>,
}

/// A server that nothing is known of, with one model.
impl Default for Site {
    fn default() -> Self {
        Self { server: "scripted", pages: vec![("/models", list(&["scripted"], "somebody"))] }
    }
}

impl Site {
    /// The same server of a kind, whose models have a context of so many tokens.
    pub fn with_context(mut self, kind: &str, size: u64) -> Self {
        let mut set = |page: &'static str, body: Value| {
            self.pages.retain(|(path, _)| *path != page);
            self.pages.push((page, body));
        };
        match kind {
            "koboldcpp" => set("/api/extra/true_max_context_length", json!({"value": size})),
            "llamafile" | "llama.cpp" => {
                set("/props", json!({"default_generation_settings": {"n_ctx": size}}))
            }
            "ollama" => set(
                "/api/ps",
                json!({"models": [{"name": "m:latest", "model": "m:latest", "context_length": size}]}),
            ),
            "lmstudio" => self.each_entry("/api/v0/models", "loaded_context_length", size),
            _ => self.each_entry("/v1/models", "max_model_len", size),
        }
        self
    }

    fn each_entry(&mut self, page: &str, field: &str, size: u64) {
        let (_, list) = self.pages.iter_mut().find(|(path, _)| *path == page).unwrap();
        for entry in list["data"].as_array_mut().unwrap() {
            entry[field] = size.into();
        }
    }

    pub(super) fn page(&self, path: &str) -> Option<Value> {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        // An unknown server has its list below any address.
        let found =
            self.pages.iter().find(|(page, _)| path == *page || *page == "/models" && path.ends_with(page));
        found.map(|(_, body)| body.clone())
    }

    fn of(server: &'static str, pages: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self { server, pages: pages.into_iter().collect() }
    }

    /// A server of unknown kind with these models.
    pub fn with_models(names: &[&str]) -> Self {
        Self { pages: vec![("/v1/models", list(names, "somebody"))], ..Self::default() }
    }

    /// A server of a kind, as its source and its documentation have it, with these models.
    pub fn of_kind(kind: &str, names: &[&str]) -> Self {
        match kind {
            "koboldcpp" => Self::of(
                "",
                [
                    ("/v1/models", list(names, "koboldcpp")),
                    ("/api/version", json!({"version": "0.7.0"})),
                    ("/api/tags", tags(names)),
                    ("/api/extra/version", json!({"result": "KoboldCpp", "version": "1.100", "llm": true})),
                ],
            ),
            "ollama" => Self::of(
                "",
                [
                    ("/v1/models", list(names, "library")),
                    ("/api/version", json!({"version": "0.13.1"})),
                    ("/api/tags", tags(names)),
                ],
            ),
            // Another header.
            "toolrack" => Self::of(
                "\r\nx-toolrack-via: 0123456789abcdef",
                [("/v1/models", list(names, "llamacpp")), ("/api/version", json!({"version": "0.13.1"}))],
            ),
            "llamafile" => Self::of("llamafile/0.9.3", [("/v1/models", list(names, "llamafile"))]),
            "llama.cpp" => Self::of(
                "llama.cpp",
                [
                    ("/v1/models", list(names, "llamacpp")),
                    ("/api/tags", tags(names)),
                    ("/props", json!({"total_slots": 1, "build_info": "b9999"})),
                ],
            ),
            "lmstudio" => Self::of(
                "",
                [
                    ("/v1/models", list(names, "organization_owner")),
                    (
                        "/api/v0/models",
                        json!({"object": "list", "data": names.iter().map(|name| json!({
                    "id": name, "object": "model", "type": if name.contains("vectors") { "embeddings" } else { "llm" },
                })).collect::<Value>()}),
                    ),
                ],
            ),
            "vllm" => Self::of(
                "uvicorn",
                [
                    ("/v1/models", list(names, "vllm")),
                    ("/version", json!({"version": "0.20.0"})),
                    ("/openapi.json", json!({"info": {"title": "FastAPI"}})),
                ],
            ),
            "sglang" => Self::of("uvicorn", [("/v1/models", list(names, "sglang"))]),
            "jan" => Self::of(
                "",
                [
                    ("/v1/models", list(names, "user")),
                    ("/openapi.json", json!({"info": {"title": "Jan API Server Endpoints"}})),
                ],
            ),
            _ => panic!("there is no kind `{kind}`"),
        }
    }
}

fn list(names: &[&str], owner: &str) -> Value {
    let models =
        names.iter().map(|name| json!({"id": name, "object": "model", "created": 1, "owned_by": owner}));
    json!({"object": "list", "data": models.collect::<Value>()})
}

/// A model is one of vectors if its name has that word.
fn tags(names: &[&str]) -> Value {
    let models = names.iter().map(|name| {
        let capability = if name.contains("vectors") { "embedding" } else { "completion" };
        json!({"name": name, "model": name, "modified_at": "2026-01-02T03:04:05Z", "capabilities": [capability]})
    });
    json!({"models": models.collect::<Value>()})
}
