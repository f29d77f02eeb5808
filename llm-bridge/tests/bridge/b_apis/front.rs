//! The five APIs, as a client speaks them.

use serde_json::{Value, json};

use crate::support::{Rack, within};

/// An API, as a client speaks it that sends back texts and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    OpenAi,
    Streamed,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

pub(super) const FRONTS: [Front; 5] =
    [Front::OpenAi, Front::Responses, Front::Anthropic, Front::Gemini, Front::Ollama];

/// What has been said: by the user and the model in turns.
pub(super) type Said = Vec<String>;

impl Front {
    pub(super) fn request(self, said: &Said) -> (&'static str, Value) {
        let roles = |assistant: &'static str| ["user", assistant].into_iter().cycle().zip(said);
        let messages = || {
            roles("assistant").map(|(role, text)| json!({"role": role, "content": text})).collect::<Value>()
        };
        match self {
            Self::OpenAi | Self::Streamed => {
                ("/v1/chat/completions", json!({"model": "scripted", "messages": messages()}))
            }
            Self::Responses => {
                ("/v1/responses", json!({"model": "scripted", "store": false, "input": messages()}))
            }
            Self::Anthropic => {
                ("/v1/messages", json!({"model": "scripted", "max_tokens": 500, "messages": messages()}))
            }
            Self::Ollama => {
                ("/api/chat", json!({"model": "scripted", "stream": false, "messages": messages()}))
            }
            Self::Gemini => {
                let content = |(role, text)| json!({"role": role, "parts": [{"text": text}]});
                let contents: Value = roles("model").map(content).collect();
                ("/v1beta/models/scripted:generateContent", json!({"contents": contents}))
            }
        }
    }

    /// The text of a reply, as such a client has it.
    fn text(self, reply: &Value) -> String {
        let texts = |list: &Value| -> String {
            list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
        };
        match self {
            Self::OpenAi | Self::Streamed => {
                reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
            }
            Self::Responses => {
                let items = reply["output"].as_array().unwrap().iter();
                items.filter(|item| item["type"] == "message").map(|item| texts(&item["content"])).collect()
            }
            Self::Anthropic => texts(&reply["content"]),
            Self::Gemini => texts(&reply["candidates"][0]["content"]["parts"]),
            Self::Ollama => reply["message"]["content"].as_str().unwrap().to_owned(),
        }
    }

    pub(super) async fn ask(self, rack: &Rack, said: &Said) -> String {
        let (path, mut body) = self.request(said);
        if self == Self::Streamed {
            body["stream"] = true.into();
            return rack.chat(body).await.content.trim().to_owned();
        }
        let reply = within(rack.client.post(rack.url(path)).json(&body).send()).await.unwrap();
        let (status, text) = (reply.status(), reply.text().await.unwrap());
        assert!(status.is_success(), "{self:?}: {status} {text}");
        self.text(&serde_json::from_str(&text).unwrap()).trim().to_owned()
    }
}
