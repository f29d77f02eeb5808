//! How likely the tokens of an answer were, from one API to another. Wires leave it among the passing fields of their API, whose front gives it out
//! as it came; those of others take it from here.

use serde_json::{Map, Value, json};

use crate::{BadRequest, Passing, Provider, RawJson, front::read_count, json::Object};

/// Where chat completions and Ollama have it: with each choice, and with each line.
const OPENAI: &str = "choice.logprobs";
const OLLAMA: &str = "logprobs";

/// Reads how many tokens are wanted at each place beside the one that the model chose; `None` where nobody asks how likely it was.
pub(crate) fn read_wanted(body: &mut Object<'_>, asked: &str, most: &str) -> Result<Option<u64>, BadRequest> {
    match body.bool(asked)? {
        Some(true) => Ok(Some(read_count(body, most)?.unwrap_or(0))),
        _ => Ok(None),
    }
}

/// What is said of each token, as chat completions do: `token`, `logprob`, `bytes`, and `top_logprobs` with the same of others.
pub(crate) fn tokens_of(fields: &Passing) -> Option<Vec<Value>> {
    let list = match fields.get(Provider::OpenAi, OPENAI) {
        Some(json) => serde_json::from_str::<Value>(json.get()).ok()?.get_mut("content")?.take(),
        None => serde_json::from_str(fields.get(Provider::Ollama, OLLAMA)?.get()).ok()?,
    };
    let token = |said: &Value| {
        let mut token = likelihood(said)?;
        let others = said.get("top_logprobs").and_then(Value::as_array);
        let others: Vec<_> = others.into_iter().flatten().filter_map(likelihood).collect();
        token.insert("top_logprobs".to_owned(), json!(others));
        Some(Value::Object(token))
    };
    Some(list.as_array()?.iter().filter_map(token).collect())
}

fn likelihood(said: &Value) -> Option<Map<String, Value>> {
    let (token, logprob) = (said.get("token")?.as_str()?, said.get("logprob").filter(|it| it.is_number())?);
    let bytes = said.get("bytes").filter(|bytes| bytes.is_array()).cloned();
    let bytes = bytes.unwrap_or_else(|| json!(token.as_bytes()));
    let fields = [("token", json!(token)), ("logprob", logprob.clone()), ("bytes", bytes)];
    Some(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Ollama's fields as those of chat completions; `None` for others.
pub(crate) fn as_openai(fields: &Passing) -> Option<Passing> {
    fields.get(Provider::Ollama, OLLAMA)?;
    let mut converted = Passing::of(Provider::OpenAi);
    converted.push(OPENAI, RawJson::of(&json!({"content": tokens_of(fields)?, "refusal": null})));
    Some(converted)
}

/// The fields of chat completions as Ollama's; `None` for others.
pub(crate) fn as_ollama(fields: &Passing) -> Option<Passing> {
    fields.get(Provider::OpenAi, OPENAI)?;
    let mut converted = Passing::of(Provider::Ollama);
    converted.push(OLLAMA, RawJson::of(&tokens_of(fields)?));
    Some(converted)
}

/// `logprobsResult` of Gemini.
pub(crate) fn as_gemini(tokens: &[Value]) -> Value {
    let candidate = |said: &Value| json!({"token": said.get("token"), "logProbability": said.get("logprob")});
    let others = |said: &Value| {
        let others = said.get("top_logprobs").and_then(Value::as_array);
        json!({"candidates": others.into_iter().flatten().map(candidate).collect::<Vec<_>>()})
    };
    json!({
        "chosenCandidates": tokens.iter().map(candidate).collect::<Vec<_>>(),
        "topCandidates": tokens.iter().map(others).collect::<Vec<_>>(),
    })
}
