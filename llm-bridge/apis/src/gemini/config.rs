//! How a client wants the model to answer: `generationConfig` and `toolConfig`.

use super::{object, schema::json_schema, take_object};
use crate::{
    BadRequest, Effort, Passing, ResponseFormat, Sampling, Thinking, ToolChoice,
    front::read_count,
    json::{Field, Object},
    logprobs,
};

/// What `generationConfig` says.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) sampling: Sampling,
    pub(super) thinking: Option<Thinking>,
    pub(super) format: Option<ResponseFormat>,
    pub(super) logprobs: Option<u64>,
    /// Whether what the model thinks is shown.
    pub(super) shows_thoughts: bool,
    /// Whether the answer is one of a few words, which the model writes as JSON.
    pub(super) is_word: bool,
}

/// Takes `generationConfig` out of a request.
pub(super) fn read_config(body: &mut Object<'_>, passing: &mut Passing) -> Result<Config, BadRequest> {
    let Some(mut config) = take_object(body, "generationConfig")? else { return Ok(Config::default()) };
    if let Some(count) = config.take("candidateCount")
        && count.integer()? != 1
    {
        return Err(count.bad("has to be 1: a turn with tools has one answer"));
    }
    for modality in config.items("responseModalities")? {
        if !modality.string()?.eq_ignore_ascii_case("TEXT") {
            return Err(modality.bad("is not offered here; `TEXT` is"));
        }
    }
    let (thinking, shows_thoughts) = read_thinking(&mut config, passing)?;
    let (format, is_word) = read_format(&mut config)?;
    let stop = config.items("stopSequences")?.iter().map(Field::string).collect::<Result<Vec<_>, _>>()?;
    let sampling = Sampling {
        max_tokens: read_count(&mut config, "maxOutputTokens")?,
        temperature: config.float("temperature")?,
        top_p: config.float("topP")?,
        top_k: config.integer("topK")?,
        presence_penalty: config.float("presencePenalty")?,
        frequency_penalty: config.float("frequencyPenalty")?,
        seed: config.integer("seed")?,
        stop: stop.into_iter().filter(|text| !text.is_empty()).collect(),
        ..Sampling::default()
    };
    let logprobs = logprobs::read_wanted(&mut config, "responseLogprobs", "logprobs")?;
    config.leave("generationConfig", passing);
    Ok(Config { sampling, logprobs, thinking, format, shows_thoughts, is_word })
}

fn read_thinking(
    config: &mut Object<'_>,
    passing: &mut Passing,
) -> Result<(Option<Thinking>, bool), BadRequest> {
    let Some(mut thinking) = take_object(config, "thinkingConfig")? else { return Ok((None, false)) };
    let shown = thinking.bool("includeThoughts")?.unwrap_or(false);
    let level = thinking.string("thinkingLevel")?.map(|level| level.to_ascii_lowercase());
    let level = level.filter(|level| level != "thinking_level_unspecified");
    let read = match (thinking.integer("thinkingBudget")?, level) {
        (Some(_), Some(_)) => {
            return Err(thinking.bad("thinkingBudget", "and `thinkingLevel` cannot both be sent"));
        }
        (None, None) => None,
        (Some(0), None) => Some(Thinking::Off),
        (Some(-1), None) => Some(Thinking::On),
        (Some(tokens), None) => {
            let bad = |_| thinking.bad("thinkingBudget", "has to be a number from -1 on");
            Some(Thinking::Budget(u64::try_from(tokens).map_err(bad)?))
        }
        (None, Some(level)) => {
            let bad = || thinking.bad("thinkingLevel", "has to be `MINIMAL`, `LOW`, `MEDIUM` or `HIGH`");
            Some(Thinking::Effort(Effort::from_word(&level).ok_or_else(bad)?))
        }
    };
    thinking.leave("thinkingConfig", passing);
    Ok((read, shown))
}

/// The form of the answer, and whether it is a word of an `enum`.
fn read_format(config: &mut Object<'_>) -> Result<(Option<ResponseFormat>, bool), BadRequest> {
    let mime = config.string("responseMimeType")?;
    let schema = read_schema(config, "responseSchema", "responseJsonSchema")?;
    let json = |schema| ResponseFormat::JsonSchema { name: None, description: None, schema, strict: None };
    match (mime.as_deref(), schema) {
        (Some("application/json"), None) => Ok((Some(ResponseFormat::JsonObject), false)),
        (None | Some("application/json"), schema) => Ok((schema.map(json), false)),
        (Some("text/x.enum"), Some(schema)) => Ok((Some(json(schema)), true)),
        (Some("text/plain"), None) => Ok((None, false)),
        _ => Err(config.bad(
            "responseMimeType",
            "has to be `text/plain`, `application/json` with or without a schema, or `text/x.enum` with one",
        )),
    }
}

/// Takes a schema: in the API's subset of OpenAPI, or as JSON Schema.
pub(super) fn read_schema(
    from: &mut Object<'_>,
    open_api: &str,
    json: &str,
) -> Result<Option<serde_json::Value>, BadRequest> {
    let (open, json_field) = (from.take(open_api), from.take(json));
    let is_open = open.is_some();
    let field = match (open, json_field) {
        (Some(both), Some(_)) => return Err(both.bad(format_args!("and `{json}` cannot both be sent"))),
        (open, json) => open.or(json),
    };
    let Some(field) = field else { return Ok(None) };
    if !field.is_object() {
        return Err(field.bad("has to be a schema: an object"));
    }
    let schema = field.value()?;
    Ok(Some(if is_open { json_schema(schema) } else { schema }))
}

/// Takes `toolConfig` out of a request: which tools may be called, and whether the calls have to fit the tools' schemas.
pub(super) fn read_choice(
    body: &mut Object<'_>,
    passing: &mut Passing,
) -> Result<(ToolChoice, bool), BadRequest> {
    const MODES: &str = "has to be `AUTO`, `ANY`, `NONE` or `VALIDATED`";
    let Some(mut outer) = take_object(body, "toolConfig")? else { return Ok((ToolChoice::Auto, false)) };
    let inner = outer.take("functionCallingConfig").map(object).transpose()?;
    outer.leave("toolConfig", passing);
    let Some(mut config) = inner else { return Ok((ToolChoice::Auto, false)) };
    let mode = config.string("mode")?.map(|mode| mode.to_ascii_uppercase());
    let names = config.items("allowedFunctionNames")?;
    let mut names = names.iter().map(Field::string).collect::<Result<Vec<_>, _>>()?;
    let choice = match (mode.as_deref(), names.len()) {
        (Some("NONE"), _) => ToolChoice::None,
        (Some("ANY"), 0) => ToolChoice::Required,
        (Some("ANY"), 1) => ToolChoice::Named(names.pop().unwrap_or_default()),
        (Some("ANY"), _) => ToolChoice::Allowed { names, required: true },
        (None | Some("AUTO" | "VALIDATED" | "MODE_UNSPECIFIED"), 0) => ToolChoice::Auto,
        (None | Some("AUTO" | "VALIDATED" | "MODE_UNSPECIFIED"), _) => {
            ToolChoice::Allowed { names, required: false }
        }
        _ => return Err(config.bad("mode", MODES)),
    };
    config.leave("functionCallingConfig", passing);
    Ok((choice, mode.as_deref() == Some("VALIDATED")))
}
