//! Any request of a client is refused with a field, or can be asked of every model server, and any turn can be encoded for it. The
//! variable `API` says which front.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolrack_apis::{
    Call, ClientCall, FinishReason, Front, Passing, ToolStatus, TurnEvent, Usage, Wire,
    anthropic::AnthropicFront,
    gemini::GeminiFront,
    ollama::{OllamaFront, OllamaWire},
    openai::{OpenAiFront, OpenAiWire},
    responses::ResponsesFront,
};

static FRONT: LazyLock<&'static dyn Front> = LazyLock::new(|| match std::env::var("API").as_deref() {
    Ok("responses") => &ResponsesFront,
    Ok("anthropic") => &AnthropicFront,
    Ok("gemini") => &GeminiFront,
    Ok("ollama") => &OllamaFront::Chat,
    Ok("ollama-generate") => &OllamaFront::Generate,
    _ => &OpenAiFront,
});

/// A turn with everything that can happen in one.
fn events(text: &str) -> Vec<TurnEvent> {
    let call = |id: &str| ClientCall { call: Call::new(id, "f", text), passing: Passing::none() };
    let (id, name, dialect) = ("c".to_owned(), "f".to_owned(), "native".to_owned());
    vec![
        TurnEvent::Model("m".into()),
        TurnEvent::Reasoning { text: text.into(), seal: None },
        TurnEvent::Text(text.into()),
        TurnEvent::Tool(ToolStatus::Started {
            id: id.clone(),
            name: name.clone(),
            arguments: text.into(),
            dialect,
        }),
        TurnEvent::Message { id: id.clone(), text: text.into(), part: None },
        TurnEvent::CallBegun { id: id.clone(), name, input: Default::default(), passing: Passing::none() },
        TurnEvent::CallDelta { id, arguments: text.into() },
        TurnEvent::Notice(text.into()),
        TurnEvent::Calls(vec![call("c"), call("d")]),
        TurnEvent::Finished { reason: FinishReason::Other(text.into()), usage: Usage::default() },
    ]
}

fuzz_target!(|body: &[u8]| {
    let uri = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let parts = http::Request::builder().method("POST").uri(uri).body(()).unwrap().into_parts().0;
    let mut decoded = match FRONT.decode(&parts, body) {
        Ok(decoded) => decoded,
        Err(bad) => {
            assert!(!bad.param.is_empty() && !bad.message.is_empty());
            FRONT.failure(&bad.into());
            return;
        }
    };
    for wire in [&OpenAiWire as &dyn Wire, &OllamaWire::default()] {
        wire.request(&decoded.request, "");
    }
    let mut out = Vec::new();
    for event in events(&String::from_utf8_lossy(body)) {
        decoded.encoder.event(event, &mut out);
    }
    decoded.encoder.finish(&mut out);
    assert!(std::str::from_utf8(&out).is_ok() && !out.is_empty());
});
