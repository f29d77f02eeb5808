//! Requests for completions.

use serde_json::{Map, Value, json};

use super::decode::{read_frame, read_reply};
use crate::{
    Decode, Encoded, Framing, Omission, Provider, Request, ResponseFormat, Wire,
    decoder::{StreamDecoder, WholeDecoder},
    ollama::leave_out_loading,
    wire::{passing_omissions, post},
};

/// What chat completions have and completions have not.
const OF_CHAT: [&str; 13] = [
    "audio",
    "chat_template",
    "chat_template_kwargs",
    "functions",
    "function_call",
    "logprobs",
    "messages",
    "modalities",
    "n",
    "prediction",
    "reasoning_format",
    "stream_options",
    "top_logprobs",
];
/// The most tokens of an answer where the server's default would end it after a few words and takes no other word for "all there is
/// room for".
const ROOM: u64 = 4096;

/// Whose form of completions it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CompletionForm {
    /// `/completion` of llama.cpp, below the server's root. Special tokens are text only where they are asked for by name.
    LlamaCpp,
    /// `/api/generate` of Ollama with `raw`, below the server's root.
    Ollama,
    /// `/completions` of OpenAI's API, without anything of one server.
    #[default]
    OpenAi,
    /// The same at vLLM.
    Vllm,
    /// The same at SGLang.
    SgLang,
}

impl CompletionForm {
    /// Whether its path is below the server's root, and not below its OpenAI API.
    pub const fn is_below_root(self) -> bool {
        matches!(self, Self::LlamaCpp | Self::Ollama)
    }

    /// Whether the server can be asked to take a prompt without a token before it that begins all prompts.
    pub const fn takes_prompt_as_it_is(self) -> bool {
        matches!(self, Self::Vllm)
    }

    const fn path(self) -> &'static str {
        match self {
            Self::LlamaCpp => "/completion",
            Self::Ollama => "/api/generate",
            _ => "/completions",
        }
    }
}

/// One request for a completion. The canonical request says how the model chooses its words; its messages and tools are in the prompt.
#[derive(Debug, Clone, Default)]
pub struct CompletionWire {
    /// Whose form it is.
    pub form: CompletionForm,
    /// The prompt.
    pub prompt: String,
    /// What ends the answer beside the client's own stop sequences.
    pub stop: Vec<String>,
    /// Special tokens that have to come as text, for servers that would hide them.
    pub tokens: Vec<String>,
    /// The size of the context in tokens that Ollama is asked for.
    pub num_ctx: Option<u64>,
    /// How long Ollama keeps the model loaded.
    pub keep_alive: Option<String>,
    /// Whether the client may say how Ollama loads the model, as in [`OllamaWire`](crate::ollama::OllamaWire).
    pub loads: bool,
}

impl Wire for CompletionWire {
    fn api(&self) -> Provider {
        if self.form == CompletionForm::Ollama { Provider::Ollama } else { Provider::OpenAi }
    }

    /// Encodes a request; `definitions` are in the prompt.
    fn request(&self, request: &Request, _definitions: &str) -> Encoded {
        let body = match self.form {
            CompletionForm::Ollama => self.ollama(request),
            _ => self.openai(request),
        };
        let none = std::iter::empty::<()>();
        Encoded { http: post(self.form.path(), &body, "", none), omissions: self.omissions(request) }
    }

    fn decoder(&self, content_type: &str) -> Box<dyn Decode> {
        match (self.form, content_type) {
            (CompletionForm::Ollama, kind) if !kind.starts_with("application/json") => {
                Box::new(StreamDecoder::new(Framing::Lines, read_frame))
            }
            (_, kind) if kind.starts_with("application/json") || kind.starts_with("text/html") => {
                Box::new(WholeDecoder::new(read_reply))
            }
            _ => Box::new(StreamDecoder::new(Framing::Sse, read_frame)),
        }
    }
}

impl CompletionWire {
    fn omissions(&self, request: &Request) -> Vec<Omission> {
        let mut all = passing_omissions(request, self.api());
        all.retain(|omission| {
            !omission.path.starts_with("messages[") && !omission.path.starts_with("tools[")
        });
        let left_out =
            |path: &str| Omission { path: path.to_owned(), done: "left out: completions do not have it" };
        all.extend(request.logprobs.map(|_| left_out("logprobs")));
        for (name, _) in request.passing.to(self.api()).iter().filter(|(name, _)| OF_CHAT.contains(&&**name))
        {
            all.push(left_out(name));
        }
        all
    }

    /// How the model chooses its words, in fields whose names the servers share.
    fn sampling(&self, request: &Request) -> Map<String, Value> {
        let sampling = &request.sampling;
        let stop: Vec<&String> = sampling.stop.iter().chain(&self.stop).collect();
        let fields = [
            ("temperature", json!(sampling.temperature)),
            ("top_p", json!(sampling.top_p)),
            ("top_k", json!(sampling.top_k)),
            ("min_p", json!(sampling.min_p)),
            ("presence_penalty", json!(sampling.presence_penalty)),
            ("frequency_penalty", json!(sampling.frequency_penalty)),
            ("repeat_penalty", json!(sampling.repeat_penalty)),
            ("seed", json!(sampling.seed)),
            ("stop", if stop.is_empty() { Value::Null } else { json!(stop) }),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn openai(&self, request: &Request) -> Map<String, Value> {
        let mut body = self.sampling(request);
        let most = request.sampling.max_tokens;
        let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
        if let Some(model) = &request.model {
            set("model", json!(model));
        }
        set("prompt", json!(self.prompt));
        set("stream", json!(true));
        match self.form {
            CompletionForm::LlamaCpp => {
                // Without an end by default.
                most.map(|most| set("n_predict", json!(most)));
                set("cache_prompt", json!(true));
                set("preserved_tokens", json!(self.tokens));
            }
            form => {
                request.sampling.repeat_penalty.map(|penalty| set("repetition_penalty", json!(penalty)));
                set("stream_options", json!({"include_usage": true}));
                match (most, form) {
                    (Some(most), _) => {
                        set("max_tokens", json!(most));
                    }
                    // By default an answer of these servers has 16 tokens.
                    (None, CompletionForm::Vllm) => {
                        set("max_tokens", Value::Null);
                    }
                    (None, CompletionForm::SgLang) => {
                        set("max_tokens", json!(ROOM));
                    }
                    _ => {}
                }
                if matches!(form, CompletionForm::Vllm | CompletionForm::SgLang) {
                    set("skip_special_tokens", json!(false));
                }
                if form.takes_prompt_as_it_is() {
                    set("add_special_tokens", json!(false));
                }
            }
        }
        match (&request.format, self.form) {
            (None, _) => {}
            (Some(ResponseFormat::JsonObject), CompletionForm::LlamaCpp) => {
                set("json_schema", json!({"type": "object"}));
            }
            (Some(ResponseFormat::JsonSchema { schema, .. }), CompletionForm::LlamaCpp) => {
                set("json_schema", schema.clone());
            }
            (Some(ResponseFormat::JsonObject), _) => {
                set("response_format", json!({"type": "json_object"}));
            }
            (Some(ResponseFormat::JsonSchema { name, schema, .. }), _) => {
                let name = name.as_deref().unwrap_or("response");
                let schema = json!({"name": name, "schema": schema, "strict": true});
                set("response_format", json!({"type": "json_schema", "json_schema": schema}));
            }
        }
        for (name, value) in request.passing.to(Provider::OpenAi) {
            // What only decoders of chat completions leave of a field begins with a dot or has one in it.
            if !OF_CHAT.contains(&&**name) && !name.contains('.') {
                body.insert(name.to_string(), serde_json::from_str(value.get()).unwrap_or_default());
            }
        }
        body
    }

    fn ollama(&self, request: &Request) -> Map<String, Value> {
        let passing = |name| request.passing.get(Provider::Ollama, name);
        let read = |name| passing(name).and_then(|json| serde_json::from_str::<Value>(json.get()).ok());
        let said = ["options", "keep_alive"].into_iter();
        let mut said: Map<String, Value> =
            said.filter_map(|name| Some((name.to_owned(), read(name)?))).collect();
        if !self.loads {
            leave_out_loading(&mut said);
        }
        let mut options = self.sampling(request);
        if let Some(most) = request.sampling.max_tokens {
            options.insert("num_predict".to_owned(), json!(most));
        }
        if let Some(size) = self.num_ctx {
            options.insert("num_ctx".to_owned(), json!(size));
        }
        if let Some(Value::Object(others)) = said.remove("options") {
            options.extend(others);
        }
        let format = request.format.as_ref().map(|format| match format {
            ResponseFormat::JsonObject => json!("json"),
            ResponseFormat::JsonSchema { schema, .. } => schema.clone(),
        });
        let keep_alive =
            said.remove("keep_alive").or_else(|| self.keep_alive.as_ref().map(|time| json!(time)));
        let fields = [
            ("model", request.model.as_ref().map(|model| json!(model))),
            ("prompt", Some(json!(self.prompt))),
            ("raw", Some(json!(true))),
            ("stream", Some(json!(true))),
            ("format", format),
            ("keep_alive", keep_alive),
            ("options", (!options.is_empty()).then_some(Value::Object(options))),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}
