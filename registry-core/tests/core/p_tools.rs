//! Tools as a developer writes them, called through the registry: requirements P2, P4 and B12.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use registry_core::{
    Caller, Cost, ErrorKind, Registry, RegistryBuilder, ToolCall, ToolOutcome, args,
    guard::audit::MemoryAudit, output, prelude::*,
};

/// Current weather for a city,
/// on two lines.
///
/// Further paragraphs are for people; only the first goes to the model.
#[tool(
    title = "Weather",
    version = "1.0.0",
    tags = ["outside", "now"],
    permission = Permission::User,
    cost = Cost::Cheap,
    timeout = secs(10),
    cooldown = millis(1500),
    daily_limit = 100,
    gate,
    effect = Effect::Write,
    idempotent,
    text_tag = TextTag::new("WEATHER").pattern(r"(\S+) (\d+)").groups(&["city", "days"]),
    deprecated = "look out of the window",
    example = "Will it rain in Oslo this week?" => {"city": "Oslo", "days": 7, "style": "short"},
    example = "And now?" => {"city": "Oslo"},
)]
async fn weather(
    ctx: &ToolContext,
    /// City name, e.g. "Oslo".
    city: String,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
    /// How it is written.
    style: Option<Style>,
) -> Result<Forecast, ToolError> {
    ctx.status("looking out of the window");
    if city == "Atlantis" {
        return Err(ToolError::failed("no such place"));
    }
    Ok(Forecast { text: format!("{city}: {style:?}"), days })
}

#[args]
#[derive(Debug, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Style {
    Short,
    VeryLong,
}

#[output]
#[derive(Debug, PartialEq)]
struct Forecast {
    /// The forecast.
    text: String,
    days: u8,
}

/// Joins words.
#[tool]
async fn join(
    /// What stands between.
    #[arg(default = ", ", length = ..=3)]
    between: &str,
    /// The words.
    #[arg(length = 1..4, example = ["a", "b"])]
    words: &[String],
    /// What stands before.
    #[arg(rename = "prefix", pattern = "^[^a-z]*$")]
    before: Option<&str>,
    /// What stands behind.
    after: Option<&[String]>,
    /// Whether it is shown, and how.
    shown: &BTreeMap<String, f32>,
) -> String {
    let after = after.unwrap_or_default().concat();
    format!("{}{}{after}{}", before.unwrap_or_default(), words.join(between), shown.len())
}

#[args]
struct Note {
    /// Where it goes.
    #[arg(default = "inbox", pattern = "^[a-z]+$")]
    folder: String,
    /// What it says.
    #[arg(length = 5)]
    text: String,
    /// How much it matters.
    #[arg(range = 0.5..4.0)]
    weight: Option<f64>,
    /// Where it was written.
    at: Option<Place>,
}

#[args]
struct Place {
    /// Its name.
    name: String,
}

/// Turns a unit around: one type as argument and as result.
#[tool]
async fn turn(
    /// The unit.
    unit: Unit,
) -> Turned {
    Turned { unit }
}

#[args]
#[output]
#[derive(Debug)]
enum Unit {
    Metric,
}

#[output]
#[args]
struct Turned {
    /// The unit.
    unit: Unit,
}

#[tokio::test]
async fn p2_one_type_is_argument_and_result() {
    let registry = host().build().unwrap();
    let context = registry.context(Caller::default());
    let outcome = registry.execute(&context, ToolCall::new("turn", json!({"unit": "Metric"}))).await;
    assert_eq!(outcome.for_model(), r#"{"unit":"Metric"}"#);
    serde_json::from_str::<Turned>(r#"{"unit":"Metric"}"#).unwrap();
}

/// Writes a note.
#[tool(effect = Effect::Write, permission = Permission::Guest, text_tag = "NOTE")]
async fn note(ctx: &ToolContext, #[args] note: Note) -> ToolResult {
    let place = note.at.map(|place| place.name).unwrap_or_default();
    ToolResult::new(format!("{}/{}/{:?}/{place}", note.folder, note.text, note.weight))
        .with_side_effect(format!("created:{}", ctx.caller().user))
}

struct Index(&'static str);
struct Cache;

/// Looks something up.
#[tool(enabled = |ctx| ctx.caller().user != "mallory")]
async fn look_up(
    index: Resource<Index>,
    _: Resource<u8>,
    cache: Option<Resource<Cache>>,
    /// What.
    word: char,
) -> String {
    format!("{word} in {}, cached: {}", index.0, cache.is_some())
}

/// A tree of words.
#[args]
struct Tree {
    /// The word here.
    word: String,
    /// What grows on it.
    #[arg(default = Vec::new())]
    branches: Vec<Tree>,
}

/// Counts the words of a tree.
#[tool]
async fn count(
    /// The tree.
    tree: &Tree,
) -> Value {
    fn words(tree: &Tree) -> usize {
        usize::from(!tree.word.is_empty()) + tree.branches.iter().map(words).sum::<usize>()
    }
    json!({"words": words(tree)})
}

/// Does nothing.
#[tool]
async fn nothing() {}

/// Reads a number.
#[tool(name = "read_number")]
async fn r#yield(
    /// The number.
    r#type: String,
) -> Result<i32, std::num::ParseIntError> {
    r#type.parse()
}

type Request = ToolContext;

/// Derived without the core's help.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plain {
    /// A word.
    word: String,
}

/// Repeats a word, with the context under another name and a type that knows nothing of this crate.
#[tool]
async fn repeat(
    request: &Request,
    /// What to repeat.
    plain: Plain,
    /// How often.
    #[arg(default = 1 + 1)]
    times: usize,
) -> String {
    plain.word.repeat(times) + if request.call_id().is_empty() { " without a call" } else { "" }
}

type Words<T> = Option<Resource<T>>;
type Perhaps<T> = Option<T>;
type Name = String;
type Answer<T> = Result<T, ToolError>;

/// Types of the developer's that are named as the core's are.
mod same_names {
    use registry_core::prelude::*;

    /// A source of energy, for a model to choose.
    #[args]
    #[derive(Debug)]
    pub(super) struct Resource<T> {
        /// How much of it.
        pub(super) amount: T,
    }

    /// A choice.
    #[args]
    #[derive(Debug)]
    pub(super) struct Option {
        /// What is chosen.
        pub(super) choice: u8,
    }
}

/// Takes its types by other names.
#[tool]
#[allow(clippy::too_many_arguments)]
async fn by_other_names(
    index: Found<Index>,
    cache: Words<Cache>,
    context: ToolContext,
    borrowed: &Resource<Index>,
    /// A resource may be described too.
    again: Resource<Index>,
    /// A name.
    #[arg(default = "Ada", length = 2..)]
    name: Name,
    /// How often.
    #[arg(default = 3, range = 1..=5, example = 4)]
    times: Perhaps<u8>,
    /// Words.
    #[arg(default = ["a", "b"])]
    words: Option<Vec<Name>>,
    /// Not the host's.
    energy: same_names::Resource<u8>,
    /// Not one that may be left out.
    option: same_names::Option,
) -> Answer<String> {
    let index = [index.0, borrowed.0, again.0].concat();
    let user = &context.caller().user;
    let cached = cache.is_some();
    Ok(format!("{index} {user} {cached} {name} {times:?} {words:?} {} {}", energy.amount, option.choice))
}

type Found<T> = Resource<T>;

/// Counts what is asked of it.
#[derive(Default)]
struct Counter(std::sync::atomic::AtomicU64);

#[tools]
impl Counter {
    const STEP: u64 = 1;

    /// Adds to the counter.
    #[tool(name = "add_up", permission = Permission::User, effect = Effect::Write)]
    async fn add(
        &self,
        ctx: &ToolContext,
        /// How much.
        #[arg(range = 1..=10)]
        much: Option<u64>,
    ) -> String {
        let much = much.unwrap_or(Self::STEP);
        let before = self.0.fetch_add(much, std::sync::atomic::Ordering::SeqCst);
        format!("{}: {}", ctx.caller().user, before + much)
    }

    /// Reads the counter, on a thread that may block.
    #[tool]
    fn read_counter(&self) -> u64 {
        self.value()
    }

    fn value(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

macro_rules! same_tool {
    ($name:ident, $ctx:ty, $argument:ty, $output:ty) => {
        /// Made by another macro.
        #[tool]
        async fn $name(
            _ctx: $ctx,
            /// What comes back.
            #[arg(length = 2..)]
            given: $argument,
        ) -> $output {
            given.map(str::to_owned).ok_or_else(|| "nothing".to_owned())
        }
    };
}

same_tool!(made, &ToolContext, Option<&str>, Result<String, String>);

/// Fails with a text.
#[tool]
async fn fail_with_text(
    /// The text.
    text: &str,
) -> Result<(), String> {
    Err(text.to_owned())
}

/// Fails with an error that nobody sees the type of.
#[tool]
async fn fail_hidden() -> std::io::Result<()> {
    Err(std::io::ErrorKind::TimedOut.into())
}

fn host() -> RegistryBuilder {
    Registry::builder().resource(Index("the index")).resource(7_u8)
}

async fn execute(host: RegistryBuilder, name: &str, arguments: Value) -> ToolOutcome {
    let registry = host.build().unwrap();
    let context = registry.context(Caller::new("ada", Permission::Owner));
    registry.execute(&context, ToolCall::new(name, arguments)).await
}

async fn call(name: &str, arguments: Value) -> Result<Value, String> {
    let outcome = execute(host(), name, arguments).await;
    outcome.result.map(|result| result.value).map_err(|error| error.message().to_owned())
}

fn schema(name: &str) -> Value {
    host().build().unwrap().get(name).unwrap().spec().input_schema.as_ref().clone()
}

#[test]
fn p2_every_tool_is_there_and_can_be_called() {
    let registry = host().build().unwrap();
    let all = registry.list_all(true);
    let of_this_file = all.iter().filter(|tool| tool.source().to_string().starts_with(file!()));
    assert_eq!(
        of_this_file.map(|tool| tool.name()).collect::<Vec<_>>(),
        [
            "add_up",
            "book",
            "by_other_names",
            "count",
            "fail_hidden",
            "fail_with_text",
            "join",
            "look_up",
            "made",
            "note",
            "nothing",
            "open_safe",
            "read_counter",
            "read_number",
            "repeat",
            "turn",
            "weather"
        ]
    );
    assert!(registry.check().is_empty());
}

#[test]
fn p2_the_signature_is_the_schema() {
    assert_eq!(
        schema("weather"),
        json!({
            "type": "object",
            "properties": {
                "city": {"description": "City name, e.g. \"Oslo\".", "type": "string"},
                "days": {"description": "Days ahead.", "type": "integer", "minimum": 1, "maximum": 14, "default": 3},
                "style": {"description": "How it is written.", "type": "string", "enum": ["short", "very_long"]},
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        schema("join"),
        json!({
            "type": "object",
            "properties": {
                "between": {"description": "What stands between.", "type": "string", "maxLength": 3, "default": ", "},
                "words": {
                    "description": "The words.",
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 3,
                    "examples": [["a", "b"]],
                },
                "prefix": {"description": "What stands before.", "type": "string", "pattern": "^[^a-z]*$"},
                "after": {"description": "What stands behind.", "type": "array", "items": {"type": "string"}},
                "shown": {
                    "description": "Whether it is shown, and how.",
                    "type": "object",
                    "additionalProperties": {"type": "number"},
                },
            },
            "required": ["words", "shown"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        schema("note"),
        json!({
            "type": "object",
            "properties": {
                "folder": {
                    "description": "Where it goes.",
                    "type": "string",
                    "pattern": "^[a-z]+$",
                    "default": "inbox",
                },
                "text": {"description": "What it says.", "type": "string", "minLength": 5, "maxLength": 5},
                "weight": {
                    "description": "How much it matters.",
                    "type": "number",
                    "minimum": 0.5,
                    "exclusiveMaximum": 4.0,
                },
                "at": {
                    "description": "Where it was written.",
                    "type": "object",
                    "properties": {"name": {"description": "Its name.", "type": "string"}},
                    "required": ["name"],
                    "additionalProperties": false,
                },
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    );
    assert_eq!(schema("nothing"), json!({"type": "object", "properties": {}, "additionalProperties": false}));
}

#[test]
fn p2_a_type_that_contains_itself_is_referred_to() {
    let schema = schema("count");
    let tree = &schema["properties"]["tree"];
    assert_eq!(tree["description"], "The tree.");
    assert!(schema["$defs"].is_object() || tree["properties"].is_object(), "{schema}");
}

#[test]
fn p2_properties_keep_the_order_of_the_signature() {
    let schema = schema("join");
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["between", "words", "prefix", "after", "shown"]);
}

#[test]
fn p2_keys_and_docs_reach_spec_and_policy() {
    let registry = host().build().unwrap();
    let tool = registry.get("weather").unwrap();
    let spec = tool.spec();
    assert_eq!(spec.description.as_deref(), Some("Current weather for a city, on two lines."));
    assert_eq!(spec.title.as_deref(), Some("Weather"));
    assert_eq!(spec.version.as_deref(), Some("1.0.0"));
    assert_eq!(spec.tags, ["outside", "now"]);
    assert_eq!(spec.deprecated.as_deref(), Some("look out of the window"));
    assert_eq!(spec.output_schema["required"], json!(["text", "days"]));
    let policy = tool.policy();
    assert_eq!(policy.permission, Permission::User);
    assert_eq!(policy.cost, Cost::Cheap);
    assert_eq!(policy.timeout, Duration::from_secs(10));
    assert_eq!(policy.cooldown, Duration::from_millis(1500));
    assert_eq!(policy.daily_limit, 100);
    assert!(policy.requires_gate && policy.idempotent);
    assert_eq!(policy.effect, Effect::Write);
    assert_eq!(policy.text_tag.unwrap().arg_groups, ["city", "days"]);
    assert_eq!(registry.get("note").unwrap().policy().text_tag.unwrap().tag_prefix, "NOTE");
    assert_eq!(tool.examples()[0].question, "Will it rain in Oslo this week?");
    assert_eq!(tool.examples()[0].arguments, json!({"city": "Oslo", "days": 7, "style": "short"}));
    assert_eq!(tool.examples()[1].arguments, json!({"city": "Oslo"}));
    assert!(!tool.definition("weather").to_string().contains("this week"), "a model does not see them");
    let source = tool.source().to_string();
    assert!(source.starts_with("registry-core/tests/core/p_tools.rs:"), "{source}");
}

/// Books a table.
#[tool(
    example = "A table for two." => {"guests": 2},
    example = "One at noon." => {"guests": 2, "at": "noon", "where": {"town": "OSLO"}, "seats": ["x"]},
)]
async fn book(
    /// How many.
    #[arg(default = MANY, range = 1..=14)]
    guests: u8,
    /// When.
    #[arg(pattern = "^[0-9]{2}:[0-9]{2}$", example = "8 o'clock")]
    at: &str,
    /// Where.
    r#where: Option<Town>,
    /// Which.
    seats: Option<Vec<u16>>,
) -> String {
    format!("{guests} {at} {} {seats:?}", r#where.map(|town| town.town).unwrap_or_default())
}

const MANY: u8 = 30;

#[args]
struct Town {
    /// Its name.
    #[arg(pattern = "^[a-z]+$")]
    town: String,
}

#[test]
fn u6_what_a_tool_shows_and_refuses_itself_is_found() {
    let registry = host().build().unwrap();
    let found = registry.get("book").unwrap().inconsistencies();
    assert_eq!(
        found,
        [
            "the default of `guests` does not fit: 30 is greater than the maximum of 14",
            "the example of `at` does not fit: \"8 o'clock\" does not match \"^[0-9]{2}:[0-9]{2}$\"",
            "the example \"A table for two.\": `at` is missing",
            "the example \"One at noon.\": `at`: \"noon\" does not match \"^[0-9]{2}:[0-9]{2}$\"; `where.town`: \"OSLO\" does \
             not match \"^[a-z]+$\"; `seats.0`: \"x\" is not of type \"integer\"",
        ]
    );
    let is_wrong = |name: &str| name == "book" || name.starts_with("types_draw");
    for tool in registry.list_all(true).iter().filter(|tool| !is_wrong(tool.name())) {
        assert_eq!(tool.inconsistencies(), Vec::<String>::new(), "{}", tool.name());
    }
}

#[tokio::test]
async fn k23_methods_share_what_the_host_provides_for_their_type() {
    let registry = Registry::builder().resource(Counter::default()).build().unwrap();
    let context = registry.context(Caller::new("ada", Permission::User));
    let call = |name, arguments| registry.execute(&context, ToolCall::new(name, arguments));
    assert_eq!(call("add_up", json!({})).await.for_model(), "ada: 1");
    assert_eq!(call("add_up", json!({"much": 5})).await.for_model(), "ada: 6");
    assert_eq!(call("read_counter", json!({})).await.for_model(), "6");
    assert!(call("add_up", json!({"much": 11})).await.for_model().contains("greater than the maximum of 10"));
    let registry = Registry::builder().build().unwrap();
    let tool = registry.get("read_counter").unwrap();
    let why = registry.why_not(&tool, &registry.context(Caller::default())).unwrap();
    assert!(why.message().contains("needs Counter"), "{why}");
    assert_eq!(Counter::default().read_counter(), 0);
}

#[tokio::test]
async fn k23_types_count_and_not_their_names() {
    let schema = schema("by_other_names");
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["name", "times", "words", "energy", "option"]);
    assert_eq!(schema["required"], json!(["energy", "option"]));
    assert_eq!(
        schema["properties"]["times"],
        json!({"description": "How often.", "type": "integer", "minimum": 1, "maximum": 5, "default": 3, "examples": [4]})
    );
    assert_eq!(schema["properties"]["words"]["default"], json!(["a", "b"]));
    let needed = || json!({"energy": {"amount": 7}, "option": {"choice": 8}});
    let given = call("by_other_names", needed()).await.unwrap();
    assert_eq!(given, json!("the indexthe indexthe index ada false Ada Some(3) Some([\"a\", \"b\"]) 7 8"));
    let registry = Registry::builder().build().unwrap();
    let tool = registry.get("by_other_names").unwrap();
    let why = registry.why_not(&tool, &registry.context(Caller::default())).unwrap();
    assert!(why.message().contains("needs Index"), "{why}");
}

#[tokio::test]
async fn p2_arguments_reach_the_function() {
    for (name, arguments, value) in [
        (
            "weather",
            json!({"city": "Oslo", "style": "short"}),
            json!({"text": "Oslo: Some(Short)", "days": 3}),
        ),
        ("weather", json!({"city": "Oslo", "days": 14}), json!({"text": "Oslo: None", "days": 14})),
        ("join", json!({"words": ["a", "b"], "shown": {}}), json!("a, b0")),
        (
            "join",
            json!({"words": ["a", "b"], "prefix": "> ", "between": "", "after": ["!"], "shown": {"x": 1.5}}),
            json!("> ab!1"),
        ),
        ("note", json!({"text": "lunch"}), json!("inbox/lunch/None/")),
        (
            "note",
            json!({"text": "lunch", "folder": "food", "weight": 2, "at": {"name": "here"}}),
            json!("food/lunch/Some(2.0)/here"),
        ),
        ("look_up", json!({"word": "x"}), json!("x in the index, cached: false")),
        (
            "count",
            json!({"tree": {"word": "a", "branches": [{"word": "b"}, {"word": ""}]}}),
            json!({"words": 2}),
        ),
        ("nothing", json!({}), json!(null)),
        ("read_number", json!({"type": "12"}), json!(12)),
        ("made", json!({"given": "abc"}), json!("abc")),
        ("repeat", json!({"plain": {"word": "ab"}}), json!("abab")),
    ] {
        assert_eq!(call(name, arguments.clone()).await, Ok(value), "{name} {arguments}");
    }
}

#[tokio::test]
async fn p2_bounds_hold() {
    for (name, arguments) in [
        ("weather", json!({"city": "Oslo", "days": 15})),
        ("weather", json!({"city": "Oslo", "days": 0})),
        ("weather", json!({"city": "Oslo", "style": "medium"})),
        ("weather", json!({"city": "Oslo", "country": "Norway"})),
        ("join", json!({"words": [], "shown": {}})),
        ("join", json!({"words": ["a", "b", "c", "d"], "shown": {}})),
        ("join", json!({"words": ["a"], "between": "long", "shown": {}})),
        ("join", json!({"words": ["a"], "prefix": "abc", "shown": {}})),
        ("note", json!({"text": "lunch", "folder": "FOOD"})),
        ("note", json!({"text": "lunches"})),
        ("note", json!({"text": "lunch", "weight": 4.0})),
        ("look_up", json!({"word": "xy"})),
    ] {
        let outcome = execute(host(), name, arguments.clone()).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::InvalidArguments, "{name} {arguments}");
    }
}

#[tokio::test]
async fn p2_what_a_function_fails_with_is_the_error() {
    assert_eq!(call("weather", json!({"city": "Atlantis"})).await, Err("no such place".to_owned()));
    assert_eq!(
        call("read_number", json!({"type": "x"})).await,
        Err("invalid digit found in string".to_owned())
    );
    assert_eq!(call("fail_with_text", json!({"text": "no"})).await, Err("no".to_owned()));
    let error = execute(host(), "fail_hidden", json!({})).await.result.unwrap_err();
    assert!(error.is_retryable());
}

#[tokio::test]
async fn p4_what_a_function_asks_for_decides() {
    let listed = |host: RegistryBuilder, user: &str| {
        let registry = host.build().unwrap();
        let context = registry.context(Caller::new(user, Permission::Owner));
        registry.select(&context).get("look_up").is_some()
    };
    assert!(listed(host(), "ada"));
    assert!(!listed(host(), "mallory"));
    assert!(!listed(Registry::builder(), "ada"));
    assert!(!listed(Registry::builder().resource(Index("the index")), "ada"));

    let error = execute(Registry::builder().resource(7_u8), "look_up", json!({"word": "x"}))
        .await
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("needs Index"), "{error}");
    let outcome = execute(host().resource(Cache), "look_up", json!({"word": "x"})).await;
    assert_eq!(outcome.for_model(), "x in the index, cached: true");
}

#[tokio::test]
async fn b12_a_tool_stays_a_function() {
    let ctx = ToolContext::default();
    let forecast = weather(&ctx, "Oslo".to_owned(), 2, None).await.unwrap();
    assert_eq!(forecast, Forecast { text: "Oslo: None".to_owned(), days: 2 });
    let words = ["a".to_owned(), "b".to_owned()];
    assert_eq!(join("-", &words, None, None, &BTreeMap::new()).await, "a-b0");
    let found = look_up(Resource::new(Index("mine")), Resource::new(1), None, 'x').await;
    assert_eq!(found, "x in mine, cached: false");
    nothing().await;
}

/// Opens the safe.
#[tool]
async fn open_safe(
    /// What opens it.
    #[arg(secret, length = 4)]
    pin: &str,
    /// Who opens it.
    login: Login,
) -> usize {
    pin.len() + login.user.len() + login.password.map_or(0, |password| password.len())
}

#[args]
struct Login {
    /// The name.
    user: String,
    /// The password.
    #[arg(secret)]
    password: Option<String>,
}

#[tokio::test]
async fn t5_a_secret_argument_is_marked_and_nobody_reads_it() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = Registry::builder().audit(audit.clone()).audit_arguments(true).build().unwrap();
    let schema = registry.get("open_safe").unwrap().spec().input_schema.clone();
    let properties = &schema["properties"];
    assert_eq!(
        properties["pin"],
        json!({"type": "string", "minLength": 4, "maxLength": 4, "writeOnly": true, "description": "What opens it."})
    );
    let login = &properties["login"]["properties"];
    assert_eq!((&login["password"]["writeOnly"], &login["user"]["writeOnly"]), (&json!(true), &Value::Null));
    let context = registry.context(Caller::default());
    let call = |arguments| registry.execute(&context, ToolCall::new("open_safe", arguments));
    let good = json!({"pin": "hush", "login": {"user": "ada", "password": "quiet"}});
    assert_eq!(call(good).await.for_model(), "12");
    // Nor do errors tell them.
    for bad in [
        json!({"pin": "hushhush", "login": {"user": "ada", "password": "quiet"}}),
        json!({"pin": "hush", "login": {"user": "ada", "password": {"quiet": 1}}}),
        json!({"pin": ["hush"], "login": {"user": "ada"}}),
    ] {
        let outcome = call(bad).await;
        let text = format!("{} {:?}", outcome.for_model(), outcome.result);
        assert!(!text.contains("hush") && !text.contains("quiet"), "{text}");
        assert!(text.contains("pin") || text.contains("login"), "{text}");
    }
    let records = serde_json::to_string(&audit.records()).unwrap();
    assert!(!records.contains("hush") && !records.contains("quiet"), "{records}");
    assert!(
        records.contains(r#""arguments":{"pin":"(secret)","login":{"user":"ada","password":"(secret)"}}"#),
        "{records}"
    );
}
