//! What clients show while a call waits for a person, who know nothing of approvals: row N13.

use registry_core::{Effect, Registry, ToolResult};
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, user, with_effect, within};

/// A server with a tool that needs an approval, before a model that calls it.
async fn rack(public_url: Option<&str>) -> Rack {
    let setup = Setup::bare().with(|setup| {
        setup.registry = Registry::builder().without_compiled().build().unwrap();
        setup.public_url = public_url.map(|url| url.parse().unwrap());
    });
    let erase = setup
        .plain_tool("erase", with_effect(Effect::Destructive), |_| async { Ok(ToolResult::new("erased")) });
    let call = Answer::new().call("c", "erase", &json!({}));
    erase.start([Reply::from(call), Reply::text("Done.")]).await
}

struct Front {
    path: &'static str,
    body: Value,
    /// What is in the frame with a piece of text, and in no other frame with the same text.
    frame: &'static str,
}

fn fronts() -> [Front; 6] {
    let messages = json!([user("Go.")]);
    [
        Front {
            path: "/v1/chat/completions",
            body: json!({"model": "m", "stream": true, "messages": messages}),
            // By which the chat page knows that it has said so already.
            frame: "\"type\":\"message\"",
        },
        Front {
            path: "/v1/responses",
            body: json!({"model": "m", "stream": true, "input": "Go."}),
            frame: "response.output_text.delta",
        },
        Front {
            path: "/v1/messages",
            body: json!({"model": "m", "stream": true, "max_tokens": 100, "messages": messages}),
            frame: "text_delta",
        },
        Front {
            path: "/v1beta/models/m:streamGenerateContent?alt=sse",
            body: json!({"contents": [{"role": "user", "parts": [{"text": "Go."}]}]}),
            frame: "\"text\":",
        },
        Front { path: "/api/chat", body: json!({"model": "m", "messages": messages}), frame: "\"content\":" },
        Front { path: "/api/generate", body: json!({"model": "m", "prompt": "Go."}), frame: "\"response\":" },
    ]
}

#[tokio::test]
async fn n13_every_front_says_in_its_text_what_a_call_waits_for_and_where_to_answer() {
    for Front { path, body, frame } in fronts() {
        for public_url in [None, Some("https://tools.example/rack/")] {
            let rack = rack(public_url).await;
            let mut reply = within(rack.client.post(rack.url(path)).json(&body).send()).await.unwrap();
            let mut read = String::new();
            let mut answered = false;
            while let Some(bytes) = within(reply.chunk()).await.unwrap() {
                read.push_str(std::str::from_utf8(&bytes).unwrap());
                let Some((_, rest)) = read.split_once("/api/approvals/").filter(|_| !answered) else {
                    continue;
                };
                let id: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                let answer = rack
                    .client
                    .post(rack.url(&format!("/api/approvals/{id}")))
                    .json(&json!({"approve": true}));
                assert_eq!(within(answer.send()).await.unwrap().status(), 200, "{path}: {id}");
                answered = true;
            }
            assert!(answered && read.contains("Done."), "{path}: {read}");
            assert_eq!(rack.ran().len(), 1, "{path}");
            let base = public_url.map_or_else(|| rack.url(""), |url| url.trim_end_matches('/').to_owned());
            let frames: Vec<&str> = read
                .lines()
                .filter(|line| {
                    line.contains(frame) && line.contains("[Waiting: a person has to allow `erase`.")
                })
                .collect();
            assert_eq!(frames.len(), 1, "{path}: {read}");
            assert!(frames[0].contains(&format!(" to {base}/api/approvals/")), "{path}: {}", frames[0]);
        }
    }
}
