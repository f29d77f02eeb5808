//! How a model chooses its words, from one API to another.

use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, FinishReason, Front, Piece, Request, TurnEvent, Usage, Wire,
    completion::{CompletionForm, CompletionWire},
    gemini::GeminiFront,
    ollama::{OllamaFront, OllamaWire},
    openai::{OpenAiFront, OpenAiWire},
    responses::ResponsesFront,
};

fn decoded(front: &dyn Front, body: &Value) -> Result<Request, BadRequest> {
    let (parts, ()) = http::Request::new(()).into_parts();
    front.decode(&parts, body.to_string().as_bytes()).map(|decoded| decoded.request)
}

fn sent(wire: &dyn Wire, request: &Request) -> Value {
    let encoded = wire.request(request, "");
    assert_eq!(encoded.omissions, []);
    serde_json::from_slice(encoded.http.body()).unwrap()
}

/// The names of the penalty at local servers: `tools/server/README.md` of llama.cpp, Ollama's `docs/modelfile.mdx`, `SamplingParams` of vLLM and SGLang.
#[test]
fn b14_the_penalty_for_repeating_has_the_name_that_a_server_knows() {
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let chat = |name: &str| json!({"messages": messages, name: 1.25});
    let requests = [
        decoded(&OpenAiFront, &chat("repeat_penalty")),
        decoded(&OpenAiFront, &chat("repetition_penalty")),
        decoded(
            &OllamaFront::Chat,
            &json!({"model": "m", "messages": messages, "options": {"repeat_penalty": 1.25}}),
        ),
        decoded(&ResponsesFront, &json!({"input": "Hi.", "repetition_penalty": 1.25})),
    ];
    for request in requests.map(Result::unwrap) {
        assert_eq!(request.sampling.repeat_penalty, Some(1.25));
        let openai = sent(&OpenAiWire, &request);
        assert_eq!([&openai["repeat_penalty"], &openai["repetition_penalty"]], [1.25, 1.25]);
        assert_eq!(sent(&OllamaWire::default(), &request)["options"], json!({"repeat_penalty": 1.25}));
        let raw = |form| sent(&CompletionWire { form, ..CompletionWire::default() }, &request);
        assert_eq!(raw(CompletionForm::LlamaCpp)["repeat_penalty"], 1.25);
        assert_eq!(raw(CompletionForm::Vllm)["repetition_penalty"], 1.25);
        assert_eq!(raw(CompletionForm::Ollama)["options"]["repeat_penalty"], 1.25);
    }
    let twice = json!({"messages": messages, "repeat_penalty": 1.1, "repetition_penalty": 1.2});
    let fault = decoded(&OpenAiFront, &twice).unwrap_err();
    assert_eq!(&*fault.param, "repetition_penalty");
}

#[test]
fn b14_what_local_servers_know_of_sampling_is_said_in_responses_too() {
    let body = json!({
        "input": "Hi.", "top_k": 40, "min_p": 0.05, "seed": 7, "presence_penalty": 0.5, "frequency_penalty": 0.25,
    });
    let request = decoded(&ResponsesFront, &body).unwrap();
    let asked = sent(&OllamaWire::default(), &request);
    let options = json!({
        "top_k": 40, "min_p": 0.05, "seed": 7, "presence_penalty": 0.5, "frequency_penalty": 0.25,
    });
    assert_eq!(asked["options"], options);
}

/// What is said of two tokens, in the form of chat completions; Ollama has the same.
fn tokens() -> [Value; 2] {
    [("75", -0.5, "80"), (" °C", -0.25, " K")].map(|(token, logprob, other)| {
        let others = [(token, logprob), (other, -1.5)]
            .map(|(token, logprob)| json!({"token": token, "logprob": logprob, "bytes": token.as_bytes()}));
        json!({"token": token, "logprob": logprob, "bytes": token.as_bytes(), "top_logprobs": others})
    })
}

/// What a client gets where a model server tells of the tokens.
fn answered(front: &dyn Front, asked: &Value, from: &dyn Wire) -> String {
    let [first, second] = tokens();
    let lines = if from.api() == toolrack_apis::Provider::Ollama {
        let line = |text: &str, token: &Value| json!({"message": {"content": text}, "logprobs": [token], "done": false});
        let end = json!({"message": {"content": ""}, "done": true, "done_reason": "stop"});
        format!("{}\n{}\n{end}\n", line("75", &first), line(" °C", &second))
    } else {
        let chunk = |text: &str, token: &Value| json!({"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [token]}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        format!(
            "data: {}\n\ndata: {}\n\ndata: {end}\n\ndata: [DONE]\n\n",
            chunk("75", &first),
            chunk(" °C", &second)
        )
    };
    let (mut decoder, mut pieces) = (from.decoder("text/event-stream"), Vec::new());
    decoder.push(lines.as_bytes(), &mut pieces).unwrap();
    let mut parts = http::Request::new(()).into_parts().0;
    parts.uri = "/v1beta/models/m:generateContent".parse().unwrap();
    let mut encoder = front.decode(&parts, asked.to_string().as_bytes()).unwrap().encoder;
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => encoder.event(TurnEvent::Text(text), &mut out),
            Piece::Passing(fields) => encoder.event(TurnEvent::Passing(fields), &mut out),
            _ => {}
        }
    }
    encoder.event(TurnEvent::Finished { reason: FinishReason::Stop, usage: Usage::default() }, &mut out);
    encoder.finish(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn b14_how_likely_tokens_are_is_asked_and_told_from_every_api_to_every_other() {
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let (openai, ollama) = (OpenAiWire, OllamaWire::default());
    let wires: [&dyn Wire; 2] = [&openai, &ollama];
    let include = json!(["reasoning.encrypted_content", "message.output_text.logprobs"]);
    let config = json!({"responseLogprobs": true, "logprobs": 2});
    let fronts: [(&dyn Front, Value); 4] = [
        (&OpenAiFront, json!({"messages": messages, "logprobs": true, "top_logprobs": 2})),
        (&ResponsesFront, json!({"input": "Hi.", "include": include, "top_logprobs": 2})),
        (
            &OllamaFront::Chat,
            json!({"model": "m", "messages": messages, "logprobs": true, "top_logprobs": 2, "stream": false}),
        ),
        (&GeminiFront, json!({"contents": [{"parts": [{"text": "Hi."}]}], "generationConfig": config})),
    ];
    let said = |entry: &Value| json!({"token": entry["token"], "logProbability": entry["logprob"]});
    let chosen: Vec<Value> = tokens().iter().map(said).collect();
    let others = tokens().map(|token| {
        json!({"candidates": token["top_logprobs"].as_array().unwrap().iter().map(said).collect::<Vec<_>>()})
    });
    let mut parts = http::Request::new(()).into_parts().0;
    parts.uri = "/v1beta/models/m:generateContent".parse().unwrap();
    for (front, body) in fronts {
        let request = front.decode(&parts, body.to_string().as_bytes()).unwrap().request;
        assert_eq!(request.logprobs, Some(2), "{body}");
        for wire in wires {
            let encoded = wire.request(&request, "");
            let sent: Value = serde_json::from_slice(encoded.http.body()).unwrap();
            assert_eq!((&sent["logprobs"], &sent["top_logprobs"]), (&json!(true), &json!(2)), "{body}");
            let told = encoded.omissions.iter().filter(|omission| omission.path.contains("logprobs"));
            assert_eq!(told.count(), 0);
            let answer: Value = serde_json::from_str(&answered(front, &body, wire)).unwrap();
            let found = match front.api() {
                toolrack_apis::Provider::OpenAi => &answer["choices"][0]["logprobs"]["content"],
                toolrack_apis::Provider::Responses => &answer["output"][0]["content"][0]["logprobs"],
                toolrack_apis::Provider::Ollama => &answer["logprobs"],
                _ => {
                    let result = &answer["candidates"][0]["logprobsResult"];
                    assert_eq!(result, &json!({"chosenCandidates": chosen, "topCandidates": others}));
                    continue;
                }
            };
            assert_eq!(found, &json!(tokens()), "{body}: {answer}");
        }
    }
}

#[test]
fn b14_each_piece_of_a_stream_has_its_own_tokens() {
    let asked = json!({"input": "Hi.", "include": ["message.output_text.logprobs"], "stream": true});
    let stream = answered(&ResponsesFront, &asked, &OllamaWire::default());
    let events: Vec<Value> =
        stream.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let of = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["type"] == kind).map(|event| &event["logprobs"]).collect()
    };
    let [first, second] = tokens();
    assert_eq!(of("response.output_text.delta"), [&json!([first]), &json!([second])]);
    assert_eq!(of("response.output_text.done"), [&json!([first, second])]);
}

#[test]
fn b14_a_raw_prompt_does_not_tell_how_likely_tokens_are_and_says_so() {
    let request = Request { logprobs: Some(0), ..Request::default() };
    let omissions = CompletionWire::default().request(&request, "").omissions;
    assert_eq!(omissions[0].to_string(), "`logprobs` left out: completions do not have it");
}
