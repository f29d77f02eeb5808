use registry_core::Permission;
use serde_json::{Value, json};

use super::*;
use crate::source::ToolFault;

fn settings() -> McpServerSettings {
    McpServerSettings::command("server", [""; 0])
}

fn listed(name: &str, annotations: Value) -> (String, Result<Listed, String>) {
    let tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
    (name.to_owned(), serde_json::from_value(tool).map_err(|error| error.to_string()))
}

fn taken(names: &[&str], settings: &McpServerSettings) -> (BTreeMap<String, AcceptedTool>, Vec<ToolFault>) {
    let tools = names.iter().map(|name| listed(name, Value::Null)).collect();
    let Intake { tools, mut faults } =
        take("s", Listing { tools, cut: None, ..Listing::default() }, settings);
    faults.sort_unstable();
    (tools, faults)
}

#[test]
fn b3_names_are_made_legal_and_mapped_back() {
    let long = "ä".repeat(200);
    let (tools, faults) = taken(&["a b", "a_b", "a/b", "x.y", ".x", &long], &settings());
    assert!(faults.is_empty(), "{faults:?}");
    let names: BTreeMap<_, _> = tools.iter().map(|(name, taken)| (&**name, &*taken.wire_name)).collect();
    let (cut, rest): (Vec<_>, Vec<_>) = names.into_iter().partition(|(name, _)| name.len() > 20);
    assert_eq!(
        rest,
        [("s._x", ".x"), ("s.a_b", "a_b"), ("s.a_b_2", "a b"), ("s.a_b_3", "a/b"), ("s.x.y", "x.y")]
    );
    assert!(cut[0].0.len() <= MAX_TOOL_NAME && cut[0].1 == long, "{cut:?}");
    let (tools, faults) = taken(&["a", "a", ""], &settings());
    assert_eq!((tools.len(), faults.len()), (1, 2), "{faults:?}");
}

#[test]
fn b3_what_the_operator_left_out_is_not_there() {
    let some = McpServerSettings {
        allow: Some(["a".to_owned(), "b".to_owned(), "z".to_owned()].into()),
        deny: ["b".to_owned()].into(),
        ..settings()
    };
    let (tools, faults) = taken(&["a", "b", "c"], &some);
    assert_eq!(tools.keys().collect::<Vec<_>>(), ["s.a"]);
    assert!(faults.len() == 1 && faults[0].tool == "z", "a name that fits nothing is reported: {faults:?}");
}

#[test]
fn b3_no_more_than_a_thousand_tools_are_taken() {
    let names: Vec<String> = (0..2000).map(|number| format!("t{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (tools, faults) = taken(&names, &settings());
    assert_eq!(tools.len(), MAX_TOOLS);
    assert!(tools.contains_key("s.t0999") && faults[0].message.contains("`allow`"), "{faults:?}");
    let one = McpServerSettings { allow: Some(["t1999".to_owned()].into()), ..settings() };
    assert!(taken(&names, &one).0.contains_key("s.t1999"));
}

#[test]
fn b3_a_hint_tightens_a_check_and_loosens_none_that_is_not_trusted() {
    let effect = |annotations: Value, settings: &McpServerSettings| {
        let tools = vec![listed("a", annotations)];
        let Intake { tools, mut faults } =
            take("s", Listing { tools, cut: None, ..Listing::default() }, settings);
        faults.sort_unstable();
        (tools, faults).0["s.a"].policy
    };
    let trusted = McpServerSettings { trust_annotations: true, ..settings() };
    let (reads, destroys) = (json!({"readOnlyHint": true}), json!({"destructiveHint": true}));
    let both = json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": true});
    for (annotations, plain, believed) in [
        (Value::Null, Effect::Write, Effect::Write),
        (reads, Effect::Write, Effect::Read),
        (destroys, Effect::Destructive, Effect::Destructive),
        (json!({"destructiveHint": false}), Effect::Write, Effect::Write),
        (both.clone(), Effect::Destructive, Effect::Read),
    ] {
        assert_eq!(effect(annotations.clone(), &settings()).effect, plain, "{annotations}");
        assert_eq!(effect(annotations.clone(), &trusted).effect, believed, "{annotations}");
    }
    assert!(!effect(both.clone(), &settings()).idempotent && effect(both.clone(), &trusted).idempotent);
    let said = McpServerSettings { effects: [("a".to_owned(), Effect::Read)].into(), ..settings() };
    assert_eq!(effect(both, &said).effect, Effect::Read, "the operator's word goes before every other");
    assert_eq!(effect(Value::Null, &settings()).permission, Permission::User);
}

#[test]
fn b3_a_schema_that_no_call_can_be_checked_with_costs_that_tool() {
    let tool = |schema| {
        let tool = json!({"name": "a", "inputSchema": schema});
        vec![("a".to_owned(), serde_json::from_value(tool).map_err(|error| error.to_string()))]
    };
    for schema in [
        json!({"type": "string"}),
        json!("object"),
        json!({"type": "object", "properties": {"x": {"type": "text"}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1/schema"}}}),
    ] {
        let Intake { tools, faults } =
            take("s", Listing { tools: tool(schema.clone()), cut: None, ..Listing::default() }, &settings());
        assert!(tools.is_empty() && faults.len() == 1, "{schema} {faults:?}");
    }
}

#[test]
fn b3_a_schema_that_can_be_mended_costs_nothing() {
    let look_around = r"^(?!\.)[a-z.]+@[a-z.]+$";
    let properties = json!({"to": {"type": "string", "pattern": look_around}, "n": {"pattern": "^a"}});
    for (schema, offered, note) in [
        (
            json!({"inputSchema": {"properties": []}}),
            json!({"type": "object", "properties": {}}),
            "was added",
        ),
        (json!({}), json!({"type": "object"}), "was added"),
        (
            json!({"inputSchema": {"type": "object", "properties": properties}}),
            json!({"type": "object", "properties": {"to": {"type": "string"}, "n": {"pattern": "^a"}}}),
            "`/properties/to/pattern`",
        ),
    ] {
        let mut tool = schema.clone();
        tool["name"] = "a".into();
        let tools = vec![("a".to_owned(), serde_json::from_value(tool).map_err(|fault| fault.to_string()))];
        let Intake { tools, faults } = take("s", Listing { tools, ..Listing::default() }, &settings());
        assert_eq!(*tools["s.a"].spec.input_schema, offered, "{schema}");
        assert!(faults.len() == 1 && faults[0].taken && faults[0].message.contains(note), "{faults:?}");
    }
}

#[test]
fn b3_a_tool_that_runs_as_a_task_alone_is_left_out() {
    for (support, is_taken) in [("required", false), ("optional", true)] {
        let tool =
            json!({"name": "a", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
        let tools = vec![("a".to_owned(), serde_json::from_value(tool).map_err(|fault| fault.to_string()))];
        let Intake { tools, faults } = take("s", Listing { tools, ..Listing::default() }, &settings());
        assert_eq!((tools.len() == 1, faults.is_empty()), (is_taken, is_taken), "{faults:?}");
    }
}

#[test]
fn a4_no_source_has_more_patterns_than_can_be_held() {
    let tool = |at: usize, pattern: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let listed = json!({"name": format!("t{at}"), "inputSchema": schema});
        (format!("t{at}"), serde_json::from_value(listed).map_err(|error| error.to_string()))
    };
    // Each alone is taken, and so are a thousand small ones.
    let large = r"^\p{L}{20}N$";
    let listed = |pattern: &str, many: usize| {
        let tools = (0..many).map(|at| tool(at, pattern)).collect();
        take("s", Listing { tools, cut: None, ..Listing::default() }, &settings()).bound_patterns()
    };
    assert_eq!(listed(large, 3).tools.len(), 3);
    let Intake { tools, faults } = listed(large, 200);
    assert!(tools.is_empty() && faults[0].message.contains("beside the source's 200 patterns"), "{faults:?}");
    assert_eq!(listed("^[a-z0-9-]{1,20}$", 1000).tools.len(), 1000);
}
