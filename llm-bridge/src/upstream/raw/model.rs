//! A model that is asked for completions: its template, and what is known from it.

use std::{collections::BTreeSet, sync::Arc};

use regex::Regex;
use serde_json::{Map, Value, json};
use toolrack_apis::{Provider, Request, Thinking, join_instructions};
use toolrack_dialects::{Offered, ScanOptions, dialects, parse};
use toolrack_templates::{Conversation, Template, TemplateError};

use super::{
    messages::template_messages,
    shape::{PROBE, Shape, user},
};
use crate::written::in_own_words;

/// What stands in templates for a special token, by its looks.
const TOKEN: &str = r"</?[|｜]?[A-Za-z_][^<>\s{}'\x22]{0,40}>|\[/?[A-Z][A-Z_]{2,40}\]";
/// How many tokens of a template are asked for as text.
const MAX_TOKENS: usize = 1024;

/// What a template is rendered with beside the conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub(super) source: String,
    pub(super) bos_token: Option<String>,
    pub(super) eos_token: Option<String>,
    /// Whether the server puts the first token before every prompt itself.
    pub(super) adds_bos: bool,
}

/// A model with a template that this server renders.
#[derive(Debug)]
pub(crate) struct RawModel {
    template: Template,
    bos_token: Option<String>,
    eos_token: Option<String>,
    adds_bos: bool,
    /// The dialect in which the template writes calls, if it does and the dialect is known.
    pub(crate) dialect: Option<&'static str>,
    /// How it wants messages.
    shape: Shape,
    /// Whether it tells the model of tools.
    pub(crate) knows_tools: bool,
    /// The special tokens that an answer may have.
    pub(super) tokens: Vec<String>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// Whether it ends within the model's thinking.
    pub(crate) thinking: bool,
}

/// The tools of a prompt.
#[derive(Debug, Default)]
pub(crate) struct RawTools {
    /// Definitions as in OpenAI's API, separated by commas.
    pub(crate) definitions: String,
    /// More, each as `{"name", "description", "parameters"}`.
    pub(crate) functions: Vec<Value>,
}

impl RawTools {
    fn into_definitions(self) -> Vec<Value> {
        let mut tools: Vec<Value> =
            serde_json::from_str(&format!("[{}]", self.definitions)).unwrap_or_default();
        tools.extend(
            self.functions.into_iter().map(|function| json!({"type": "function", "function": function})),
        );
        tools
    }
}

/// Why a conversation has no prompt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPrompt {
    #[error("the chat template knows no tools")]
    NoTools,
    #[error("there is more than text in the conversation")]
    NotText,
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl RawModel {
    /// Reads a template, and what it does with tools. It may take a second of a processor.
    pub(super) fn new(given: Given) -> Result<Self, TemplateError> {
        let Given { source, bos_token, eos_token, adds_bos } = given;
        let template = Template::new(&source)?;
        let tokens = tokens_in(&source, eos_token.as_deref());
        let mut model = Self {
            template,
            bos_token,
            eos_token,
            adds_bos,
            dialect: None,
            shape: Shape::default(),
            knows_tools: false,
            tokens,
        };
        let tools = [probe_definition()];
        let Ok(before) = model.render(&[user()], &tools, true, Map::new()) else { return Ok(model) };
        model.knows_tools = before.contains(PROBE.0);
        let render = |messages: &[Value]| model.render(messages, &tools, false, Map::new()).ok();
        let (shape, after) = Shape::shown_by(&render, &|after| dialect_of(&before, after).is_some());
        model.dialect = after.and_then(|after| dialect_of(&before, &after));
        model.shape = shape;
        Ok(model)
    }

    fn render(
        &self,
        messages: &[Value],
        tools: &[Value],
        add_generation_prompt: bool,
        others: Map<String, Value>,
    ) -> Result<String, TemplateError> {
        self.template.render(&Conversation {
            tools,
            add_generation_prompt,
            // Templates put them together with texts, which cannot be done with what is not there.
            bos_token: Some(self.bos_token.as_deref().unwrap_or_default()),
            eos_token: Some(self.eos_token.as_deref().unwrap_or_default()),
            others,
            ..Conversation::new(messages)
        })
    }

    /// The text that ends an answer, if the model has one.
    pub(super) fn end(&self) -> Option<&str> {
        self.eos_token.as_deref().filter(|token| !token.is_empty())
    }

    /// The prompt of a request with these tools. It may take a second of a processor.
    pub(super) fn prompt(&self, request: &Request, tools: RawTools) -> Result<Prompt, NoPrompt> {
        let tools = tools.into_definitions();
        if !tools.is_empty() && !self.knows_tools {
            return Err(NoPrompt::NoTools);
        }
        let mut messages = request.messages.clone();
        join_instructions(&mut messages);
        self.shape.system.hold(&mut messages);
        let render = |shape: Shape| {
            let messages = template_messages(&messages, shape).ok_or(NoPrompt::NotText)?;
            Ok(self.render(&shape.shaped(messages), &tools, true, others_of(request))?)
        };
        let text = match render(self.shape) {
            Err(NoPrompt::Template(TemplateError::Refused(_))) => render(self.shape.with_short_ids())?,
            rendered => rendered?,
        };
        let text = match self.bos_token.as_deref().filter(|token| self.adds_bos && !token.is_empty()) {
            Some(token) => text.strip_prefix(token).unwrap_or(&text).to_owned(),
            None => text,
        };
        let text = in_own_words(text, &messages);
        let thinking = open_thinking(&text).is_some();
        Ok(Prompt { text, thinking })
    }
}

impl Prompt {
    /// The same with the thinking ended, for an answer that a grammar keeps to calls.
    pub(super) fn without_thinking(mut self) -> Self {
        if let Some(close) = open_thinking(&self.text) {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str(&format!("\n{close}\n\n"));
            self.thinking = false;
        }
        self
    }
}

/// The delimiter that ends the thinking which a prompt has opened at its end.
fn open_thinking(prompt: &str) -> Option<&'static str> {
    let prompt = prompt.trim_end();
    let mut pairs = dialects().flat_map(|dialect| dialect.thinking).chain(&[("<think>", "</think>")]);
    pairs.find(|(open, _)| !open.is_empty() && prompt.ends_with(open)).map(|(_, close)| *close)
}

/// What the template may ask for, of a request.
fn others_of(request: &Request) -> Map<String, Value> {
    let mut others = Map::new();
    if let Some(thinking) = request.thinking {
        let thinks = thinking != Thinking::Off;
        others.insert("enable_thinking".to_owned(), thinks.into());
        others.insert("thinking".to_owned(), thinks.into());
        if let Thinking::Effort(effort) = thinking {
            others.insert("reasoning_effort".to_owned(), effort.as_str().into());
        }
    }
    let given = request.passing.get(Provider::OpenAi, "chat_template_kwargs");
    let given = given.and_then(|json| serde_json::from_str::<Map<String, Value>>(json.get()).ok());
    others.extend(given.unwrap_or_default());
    others
}

fn probe_definition() -> Value {
    let parameters = json!({"type": "object", "properties": {PROBE.1: {"type": "string", "description": "A value."}}, "required": [PROBE.1]});
    json!({"type": "function", "function": {"name": PROBE.0, "description": "A tool.", "parameters": parameters}})
}

/// The dialect of the probe's call, which stands in `after` where it is no longer `before`.
fn dialect_of(before: &str, after: &str) -> Option<&'static str> {
    let shared = before.chars().zip(after.chars()).take_while(|(one, other)| one == other);
    let shared = shared.map(|(char, _)| char.len_utf8()).sum();
    let read = |text: &str| {
        let parsed = parse(text, Arc::new(Offered::any()), ScanOptions::default());
        let call = parsed.calls.into_iter().next()?;
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        (call.name == PROBE.0 && arguments == json!({PROBE.1: PROBE.2})).then_some(call.dialect)
    };
    // A delimiter may begin as what the prompt for an answer ends with, or go on from there.
    let line = after.get(..shared)?.rfind(['\n', '>', ']']).map_or(0, |at| at + 1);
    read(after.get(line..)?).or_else(|| read(after.get(shared..)?))
}

/// What looks like special tokens in a template, without the one that ends an answer; and the delimiters of all dialects.
fn tokens_in(source: &str, end: Option<&str>) -> Vec<String> {
    let found = Regex::new(TOKEN).ok();
    let found =
        found.iter().flat_map(|pattern| pattern.find_iter(source)).map(|found| found.as_str().to_owned());
    let of_dialects = dialects().flat_map(|dialect| {
        let opening = dialect.delimiters.iter().map(|delimiter| delimiter.text);
        let thinking = dialect.thinking.iter().flat_map(|(open, close)| [*open, *close]);
        opening.chain(dialect.close.iter().copied()).chain(thinking).map(str::to_owned)
    });
    let tokens: BTreeSet<String> = found.take(16 * MAX_TOKENS).chain(of_dialects).collect();
    let mut tokens: Vec<String> =
        tokens.into_iter().filter(|token| Some(token.as_str()) != end && !token.is_empty()).collect();
    tokens.truncate(MAX_TOKENS);
    tokens
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Call, Content, Message, Reasoning, Role, ToolResult};

    use super::*;

    const TAGS: &str = "{% for tool in tools or [] %}{{ tool | tojson }}\n{% endfor %}\
        {% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\
        {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}\
        {% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}{% endif %}";

    fn model(source: &str) -> RawModel {
        let eos_token = Some("<|im_end|>".to_owned());
        let bos_token = Some("<s>".to_owned());
        RawModel::new(Given { source: source.to_owned(), bos_token, eos_token, adds_bos: true }).unwrap()
    }

    fn request() -> Request {
        Request { messages: vec![Message::text(Role::User, "Hello")], ..Request::default() }
    }

    #[test]
    fn b14_a_template_tells_its_dialect_and_its_tokens() {
        let tags = model(TAGS);
        assert_eq!(tags.dialect, Some("hermes"));
        assert!(tags.knows_tools);
        for token in ["<tool_call>", "</tool_call>", "<think>", "<|im_start|>"] {
            assert!(tags.tokens.iter().any(|known| known == token), "{token}");
        }
        assert!(!tags.tokens.iter().any(|known| known == "<|im_end|>"));
    }

    #[test]
    fn b14_the_dialect_is_known_where_the_prompt_begins_the_message_and_where_the_tokens_are_not() {
        // As gpt-oss has it: the prompt ends with the head of the message, and the call goes on in it.
        let head = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|start|>{{ m.role }}\
            {% for c in m.tool_calls or [] %} to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>\
            {{ c.function.arguments | tojson }}<|call|>{% endfor %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}";
        assert_eq!(model(head).dialect, Some("harmony"));
        // As Mistral's has it, with the token that ends an answer, in a file that does not say which it is.
        let ends = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{% if m.tool_calls %}\
            {{ '[TOOL_CALLS]' + (m.tool_calls | map(attribute='function') | list | tojson) + eos_token }}\
            {% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}";
        let given = Given { source: ends.to_owned(), ..Given::default() };
        assert_eq!(RawModel::new(given).unwrap().dialect, Some("mistral"));
    }

    #[test]
    fn b14_a_template_without_tools_is_not_asked_with_tools() {
        let plain = model("{% for m in messages %}{{ m.content }}{% endfor %}");
        assert_eq!(plain.dialect, None);
        let functions = vec![json!({"name": "f", "parameters": {}})];
        let tools = RawTools { functions, ..RawTools::default() };
        assert!(matches!(plain.prompt(&request(), tools), Err(NoPrompt::NoTools)));
        assert_eq!(plain.prompt(&request(), RawTools::default()).unwrap().text, "Hello");
    }

    #[test]
    fn b14_thinking_that_the_prompt_opens_is_known() {
        let tags = model(TAGS);
        let prompt = tags.prompt(&request(), RawTools::default()).unwrap();
        assert!(prompt.thinking && prompt.text.ends_with("<think>\n"), "{prompt:?}");
        let ended = prompt.without_thinking();
        assert!(!ended.thinking && ended.text.ends_with("<think>\n</think>\n\n"), "{ended:?}");
        let off = tags
            .prompt(&Request { thinking: Some(Thinking::Off), ..request() }, RawTools::default())
            .unwrap();
        assert!(!off.thinking && off.text.ends_with("assistant\n"), "{off:?}");
    }

    #[test]
    fn b14_the_first_token_is_not_there_twice() {
        let prompt =
            model("{{ bos_token }}{{ messages[0].content }}").prompt(&request(), RawTools::default());
        assert_eq!(prompt.unwrap().text, "Hello");
    }

    #[test]
    fn b14_ids_that_a_template_refuses_are_shortened() {
        let strict = model(
            "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('ids') }}\
             {% endif %}{{ c.id }}{% endfor %}{% endfor %}",
        );
        let call = toolrack_apis::Call::new("call_long_and_odd", "f", "{}");
        let called = Message::new(Role::Assistant, vec![toolrack_apis::Content::Call(call).into()]);
        let prompt =
            strict.prompt(&Request { messages: vec![called], ..Request::default() }, RawTools::default());
        assert_eq!(prompt.unwrap().text, "000000001");
    }

    /// Some messages, a call of two tools with a thought and words before it among them.
    fn conversation() -> Request {
        let call = |id: &str, city: &str| {
            let arguments = format!("{{\"city\":  \"{city}\"}}");
            Content::Call(Call::new(id, "weather", arguments)).into()
        };
        let result = |id: &str, text: &str| {
            let parts = vec![Content::Text(text.into()).into()];
            Message::result(ToolResult { call_id: id.into(), parts, ..ToolResult::default() })
        };
        let thought = Reasoning { text: "Two.".into(), seal: None };
        let mut parts = vec![Content::Reasoning(thought).into(), Content::Text("I look.".into()).into()];
        parts.extend([call("1", "Oslo"), call("2", "Rome")]);
        let messages = vec![
            Message::text(Role::System, "Brief."),
            Message::text(Role::Developer, "Kind."),
            Message::text(Role::User, "Go."),
            Message::new(Role::Assistant, parts),
            result("2", "sun"),
            result("1", "rain"),
            Message::text(Role::System, "Later."),
            Message::text(Role::User, "Well?"),
        ];
        Request { messages, ..Request::default() }
    }

    fn prompt_of(source: &str) -> String {
        let model = model(source);
        let functions = vec![json!({"name": "weather", "parameters": {}})];
        model.prompt(&conversation(), RawTools { functions, ..RawTools::default() }).unwrap().text
    }

    #[test]
    fn b14_calls_are_one_by_one_where_a_template_writes_the_first_alone() {
        // As that of gpt-oss does.
        let prompt = prompt_of(
            "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}{% set ns = namespace(name='') %}\
             {% for m in messages %}{% if loop.first and m.role == 'system' %}<d>{{ m.content }}{% elif m.role == 'assistant' and m.tool_calls %}\
             {% if m.content and m.thinking %}{{ raise_exception('Cannot pass both content and thinking') }}{% endif %}\
             {% if m.content or m.thinking %}<t>{{ m.content or m.thinking }}{% endif %}\
             {% set c = m.tool_calls[0].function %}<c>{{ c.name }}{{ c.arguments | tojson }}{% set ns.name = c.name %}\
             {% elif m.role == 'tool' %}{% if not ns.name %}{{ raise_exception('no call before') }}{% endif %}<r>{{ m.content }}{% set ns.name = '' %}\
             {% elif m.role == 'user' %}<u>{{ m.content }}{% elif m.role == 'assistant' %}<a>{{ m.content }}{% endif %}{% endfor %}",
        );
        assert_eq!(
            prompt,
            "[weather]<d>Brief.\n\nKind.<u>Go.<t>Two.<c>weather{\"city\": \"Oslo\"}<r>rain<c>weather{\"city\": \"Rome\"}<r>sun<u>Later.\nWell?"
        );
    }

    #[test]
    fn b14_arguments_are_text_where_a_template_puts_them_together_with_text() {
        // As those of DeepSeek do, some only where there is no content.
        let source = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}{% for m in messages %}\
             {% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}\
             {{ '<tool_call>{\\\"name\\\": \\\"' + c.function.name + '\\\", \\\"arguments\\\": ' + c.function.arguments + '}</tool_call>' }}{% endfor %}\
             {% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}";
        assert_eq!(model(source).dialect, Some("hermes"));
        let mut conversation = conversation();
        conversation.messages[3].parts.drain(..2);
        let functions = vec![json!({"name": "weather", "parameters": {}})];
        let prompt =
            model(source).prompt(&conversation, RawTools { functions, ..RawTools::default() }).unwrap();
        let call = |city: &str| {
            format!(
                "<tool_call>{{\"name\": \"weather\", \"arguments\": {{\"city\":  \"{city}\"}}}}</tool_call>"
            )
        };
        let calls = call("Oslo") + &call("Rome");
        assert_eq!(
            prompt.text,
            format!(
                "[weather]<system>Brief.\n\nKind.<user>Go.{calls}<tool>sun<tool>rain<system>Later.<user>Well?"
            )
        );
    }

    #[test]
    fn b14_system_messages_stand_where_a_template_takes_them() {
        let source = |first: &str, later: &str| {
            format!(
                "{{% for m in messages %}}{{% if m.role == 'system' and {first} %}}{{{{ raise_exception('no') }}}}{{% endif %}}\
                 {{% if m.role == 'system' and {later} %}}{{{{ raise_exception('first') }}}}{{% endif %}}<{{{{ m.role }}}}>{{{{ m.content }}}}{{% endfor %}}"
            )
        };
        let plain = |source: &str| {
            let mut request = conversation();
            request.messages.drain(3..6);
            model(source).prompt(&request, RawTools::default()).unwrap().text
        };
        let (first, later) = ("loop.first", "not loop.first");
        assert_eq!(
            plain(&source("false", "false")),
            "<system>Brief.\n\nKind.<user>Go.<system>Later.<user>Well?"
        );
        assert_eq!(plain(&source("false", later)), "<system>Brief.\n\nKind.<user>Go.\nLater.\nWell?");
        assert_eq!(plain(&source(first, later)), "<user>Brief.\n\nKind.\nGo.\nLater.\nWell?");
    }
}
