//! The tools that the probes offer, which nobody runs, and the calls that fit their questions.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolrack_apis::{ClientTool, Passing, Request, ToolInput};
use toolrack_dialects::{Offered, OfferedTool, parse};

use super::session::{Answered, CALL_TOKENS, Session};
use crate::{
    turn::prompt,
    upstream::{RawModel, RawQuestion, RawTools, UpstreamError},
};

/// A question, and the calls that fit it.
pub(super) struct Question {
    text: &'static str,
    calls: &'static [Wanted],
}

/// A call that fits.
struct Wanted {
    name: &'static str,
    arguments: &'static [(&'static str, Argument)],
}

enum Argument {
    /// Text that begins so, in any case.
    Begins(&'static str),
    /// One of these numbers; the order of summands does not matter.
    OneOf([i64; 2]),
}

// Short of the letters that some write with an accent.
const REYKJAVIK: Wanted = Wanted { name: "weather", arguments: &[("city", Argument::Begins("reykjav"))] };
const ANTANANARIVO: Wanted =
    Wanted { name: "weather", arguments: &[("city", Argument::Begins("antananarivo"))] };
const SUM: Wanted = Wanted {
    name: "add",
    arguments: &[("a", Argument::OneOf([4711, 1889])), ("b", Argument::OneOf([1889, 4711]))],
};

/// Each is about one call.
pub(super) const QUESTIONS: [Question; 3] = [
    Question { text: "What is the weather in Reykjavik right now?", calls: &[REYKJAVIK] },
    Question { text: "Add 4711 and 1889 with the tool for it.", calls: &[SUM] },
    Question { text: "How warm is it in Antananarivo right now?", calls: &[ANTANANARIVO] },
];

/// It is about two calls.
pub(super) const PAIR: Question = Question {
    text: "What is the weather in Reykjavik and in Antananarivo right now? Look up both at once, with two calls.",
    calls: &[REYKJAVIK, ANTANANARIVO],
};

/// The tool that a question about the weather does not need.
pub(super) const ADD: &str = "add";

/// The tools as OpenAI defines functions.
fn functions() -> [Value; 2] {
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    let number = json!({"type": "integer"});
    [
        json!({
            "name": "weather",
            "description": "Get the weather in a city: temperature, wind and rain right now.",
            "parameters": object(json!({"city": {"type": "string", "description": "The city's name"}}), &["city"]),
        }),
        json!({
            "name": ADD,
            "description": "Add two whole numbers.",
            "parameters": object(json!({"a": number, "b": number}), &["a", "b"]),
        }),
    ]
}

fn offered() -> Arc<Offered> {
    let tool = |mut function: Value| {
        let mut tool = OfferedTool::new(function.get("name").and_then(Value::as_str).unwrap_or_default());
        tool.schema = function.get_mut("parameters").map(|schema| schema.take().into());
        tool
    };
    Arc::new(Offered::new(functions().map(tool)))
}

fn client_tool(mut function: Value) -> ClientTool {
    let text = |field: &str| function.get(field).and_then(Value::as_str).map(str::to_owned);
    ClientTool {
        name: text("name").unwrap_or_default(),
        description: text("description"),
        input: ToolInput::Json {
            schema: function.get_mut("parameters").map(|schema| schema.take().into()),
            strict: None,
        },
        passing: Passing::none(),
    }
}

impl Session<'_> {
    /// A question with the tools in the fields of the API.
    pub(super) fn with_tools(&self, text: &str) -> Request {
        let tools = functions().map(client_tool).into();
        Request { tools, ..self.without_tools(text) }
    }

    /// A question with the tools in a prompt from the model's template.
    ///
    /// # Errors
    /// When the template knows no tools, or fails.
    pub(super) async fn with_template(
        &self,
        text: &str,
        model: &Arc<RawModel>,
    ) -> Result<(Request, RawQuestion), UpstreamError> {
        let request = self.without_tools(text);
        let tools = RawTools { functions: functions().into(), ..RawTools::default() };
        let question = self.route.raw_question(Arc::clone(model), request.clone(), tools, false).await?;
        Ok((request, question))
    }

    fn without_tools(&self, text: &str) -> Request {
        let mut request = Self::question(text, CALL_TOKENS);
        prompt::add_system_prompt(&mut request.messages, &self.chat.system_prompt_with_tools, "");
        request
    }

    /// A question with the tools in the prompt, described in a dialect.
    pub(super) fn with_prompt(&self, text: &str, dialect: &str) -> Request {
        let mut request = self.without_tools(text);
        prompt::describe_tools(&mut request.messages, &functions(), Some(dialect), false);
        request
    }

    /// Reads the calls of an answer, those in its text in one dialect only or in all.
    pub(super) fn calls(&self, answered: &Answered, only: Option<&'static str>) -> Calls {
        let parsed = parse(&answered.text, offered(), self.scan_options(answered, only));
        let native = answered.calls.iter().map(|call| (call.name.clone(), call.arguments.clone()));
        Calls {
            native: native.collect(),
            text: parsed.calls.into_iter().map(|call| (call.name, call.arguments)).collect(),
            dialect: parsed.dialect,
        }
    }
}

/// The calls in an answer, each a name with its arguments.
pub(super) struct Calls {
    native: Vec<(String, String)>,
    text: Vec<(String, String)>,
    /// The dialect of the first one in the text.
    pub(super) dialect: Option<&'static str>,
}

impl Calls {
    /// Whether the native calls are right.
    pub(super) fn is_native_right(&self, question: &Question) -> bool {
        question.is_answered_by(&self.native)
    }

    /// Whether the calls in the text are right.
    pub(super) fn is_text_right(&self, question: &Question) -> bool {
        question.is_answered_by(&self.text)
    }

    pub(super) fn is_right(&self, question: &Question) -> bool {
        self.is_native_right(question) || self.is_text_right(question)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.native.is_empty() && self.text.is_empty()
    }

    pub(super) fn has_native(&self) -> bool {
        !self.native.is_empty()
    }

    /// The names of those that have all that their tools require, right or not.
    pub(super) fn whole(&self) -> impl Iterator<Item = &str> {
        let all = self.native.iter().chain(&self.text);
        all.filter(|(name, arguments)| is_whole(name, arguments)).map(|(name, _)| name.as_str())
    }
}

impl Question {
    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    fn is_answered_by(&self, calls: &[(String, String)]) -> bool {
        self.calls.iter().all(|wanted| calls.iter().any(|(name, arguments)| wanted.fits(name, arguments)))
    }
}

impl Wanted {
    fn fits(&self, name: &str, arguments: &str) -> bool {
        let Some(given) = object(arguments).filter(|_| name == self.name) else { return false };
        self.arguments.iter().all(|(name, wanted)| given.get(*name).is_some_and(|value| wanted.fits(value)))
    }
}

impl Argument {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Begins(word) => {
                value.as_str().is_some_and(|text| text.trim().to_lowercase().starts_with(word))
            }
            Self::OneOf(numbers) => {
                // Arguments are coerced: a number in a text is one.
                let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
                let number = text.strip_suffix(".0").unwrap_or(&text).parse::<i64>();
                number.is_ok_and(|number| numbers.contains(&number))
            }
        }
    }
}

fn object(arguments: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(arguments).ok()
}

/// Whether a call is of one of the tools, with all that it requires.
fn is_whole(name: &str, arguments: &str) -> bool {
    let Some(given) = object(arguments) else { return false };
    functions().iter().any(|function| {
        let required = function.pointer("/parameters/required").and_then(Value::as_array);
        let has = |field: &Value| field.as_str().is_some_and(|field| given.contains_key(field));
        function.get("name").and_then(Value::as_str) == Some(name)
            && required.is_some_and(|all| all.iter().all(has))
    })
}
