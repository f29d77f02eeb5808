//! Arguments on their way from a model to a tool: coerced where they do not fit the schema, then validated.

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::{
    bounded::{BoundedValidator, check_is_object, invalid_schema},
    coerce::{coerce, settle_integers},
    faults::{describe, invalid, not_an_object, too_much},
    has_secret,
};
use crate::{json::parts, result::ToolError};

/// How many faults are reported to the model at once.
const MAX_FAULTS: usize = 8;
/// Validates the arguments of one tool.
#[derive(Debug)]
pub(crate) struct ArgumentChecker {
    validator: BoundedValidator,
    has_secret: bool,
}

impl ArgumentChecker {
    /// A checker for an input schema.
    ///
    /// # Errors
    /// What is wrong with the schema.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        check_is_object(schema)?;
        Ok(Self { validator: BoundedValidator::new(schema)?, has_secret: has_secret(schema) })
    }

    /// A validator as that of arguments, for a part of their schema.
    ///
    /// # Errors
    /// What is wrong with the schema.
    pub(super) fn validator(schema: &Value) -> Result<Validator, String> {
        BoundedValidator::new(schema).map(|bounded| bounded.validator)
    }

    /// What keeps arguments from being taken as they are, without coercion.
    pub(super) fn faults(&self, arguments: &Value, schema: &Value) -> Vec<String> {
        let faults = self.validator.validator.iter_errors(arguments).take(MAX_FAULTS);
        faults.map(|error| describe(&error, schema)).collect()
    }

    /// Whether arguments are fitted in no time; else it belongs on a thread of its own.
    pub(crate) fn is_quick(&self, schema: &Value, arguments: &Value) -> bool {
        self.validator.work.is_quick(schema, arguments)
    }

    /// What is wrong with an input schema, found without making a validator where it has no part that only that shows.
    pub(crate) fn fault(schema: &Value) -> Option<String> {
        if needs_validator(schema) {
            return Self::new(schema).err();
        }
        let valid =
            || jsonschema::draft202012::meta::validate(schema).map_err(|error| invalid_schema(&error));
        check_is_object(schema).and_then(|()| valid()).err()
    }

    /// Whether an argument is marked as secret.
    pub(crate) fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// The arguments as the tool takes them.
    ///
    /// # Errors
    /// `InvalidArguments`, with what was wrong, where, and what is expected.
    pub(crate) fn fit(
        &self,
        tool: &str,
        schema: &Value,
        arguments: Value,
    ) -> Result<Map<String, Value>, ValidationError> {
        let mut object = match object_in(arguments) {
            Ok(object) => Value::Object(object),
            Err(given) => return Err(ValidationError { error: not_an_object(tool, schema, &given), given }),
        };
        if let Err(fault) = self.validator.work.check(schema, &object) {
            return Err(ValidationError { error: too_much(tool, fault), given: object });
        }
        if !self.validator.validator.is_valid(&object) {
            let given = object.clone();
            coerce(&mut object, schema);
            // A text that was read as a list is more than it was.
            if let Err(fault) = self.validator.work.check(schema, &object) {
                return Err(ValidationError { error: too_much(tool, fault), given });
            }
            let faults = self.faults(&object, schema);
            if !faults.is_empty() {
                return Err(ValidationError { error: invalid(tool, schema, &faults), given });
            }
        }
        settle_integers(&mut object, schema);
        object_in(object)
            .map_err(|given| ValidationError { error: not_an_object(tool, schema, &given), given })
    }
}

/// Whether a schema has keywords that can be wrong in a way the meta-schema does not see: patterns, references, other drafts.
fn needs_validator(schema: &Value) -> bool {
    parts(schema)
        .any(|(name, _)| name.is_some_and(|name| name.starts_with('$') || name.starts_with("pattern")))
}

/// Arguments that do not fit.
#[derive(Debug)]
pub(crate) struct ValidationError {
    /// Why.
    pub(crate) error: ToolError,
    /// The arguments as they came.
    pub(crate) given: Value,
}

/// The object that is meant; else what was given.
fn object_in(arguments: Value) -> Result<Map<String, Value>, Value> {
    match arguments {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Ok(object),
            _ if text.trim().is_empty() => Ok(Map::new()),
            _ => Err(Value::String(text)),
        },
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit(schema: &Value, arguments: Value) -> Result<Value, String> {
        ArgumentChecker::new(schema)
            .unwrap()
            .fit("weather", schema, arguments)
            .map(Value::Object)
            .map_err(|invalid| invalid.error.feedback().to_owned())
    }

    fn weather() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["metric", "imperial"]},
                "hours": {"type": "array", "items": {"type": "integer"}},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn b6_what_fits_is_not_touched() {
        let arguments = json!({"city": "5", "days": 3, "hours": [1], "place": {"lat": 1.5}});
        assert_eq!(fit(&weather(), arguments.clone()), Ok(arguments));
    }

    #[test]
    fn b6_what_is_plainly_meant_is_coerced() {
        for (given, taken) in [
            (json!({"city": "Oslo", "days": "3"}), json!({"city": "Oslo", "days": 3})),
            (json!({"city": 5}), json!({"city": "5"})),
            (json!({"city": "Oslo", "hours": "[1, \"2\"]"}), json!({"city": "Oslo", "hours": [1, 2]})),
            (json!({"city": "Oslo", "hours": 4}), json!({"city": "Oslo", "hours": [4]})),
            (json!({"city": "Oslo", "unit": " Metric"}), json!({"city": "Oslo", "unit": "metric"})),
            (json!({"city": "Oslo", "days": null}), json!({"city": "Oslo"})),
            (
                json!({"city": "Oslo", "place": "{\"lat\": \"1.5\"}"}),
                json!({"city": "Oslo", "place": {"lat": 1.5}}),
            ),
            (json!("{\"city\": \"Oslo\"}"), json!({"city": "Oslo"})),
            (
                json!({"city": "Oslo", "days": 3.0, "hours": [1e2]}),
                json!({"city": "Oslo", "days": 3, "hours": [100]}),
            ),
        ] {
            assert_eq!(fit(&weather(), given.clone()), Ok(taken), "{given}");
        }
    }

    #[test]
    fn k11_a_list_that_was_cut_off_is_an_error() {
        let schema = json!({"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}});
        for cut in ["[a, b", r#"["a", "b"#, r#" ["a","#] {
            let error = fit(&schema, json!({"names": cut})).unwrap_err();
            assert!(error.contains("`names`") && error.contains("not of type \"array\""), "{error}");
        }
        assert_eq!(fit(&schema, json!({"names": "a, b"})), Ok(json!({"names": ["a, b"]})));
    }

    #[test]
    fn b6_what_does_not_fit_is_reported_with_place_and_expectation() {
        for (given, expected) in [
            (json!({}), "`city` is missing"),
            (json!({"city": "Oslo", "dais": 3}), "there is no `dais`; did you mean `days`?"),
            (json!({"city": "Oslo", "days": 30}), "`days`: 30 is greater than the maximum of 14"),
            (json!({"city": "Oslo", "hours": [1, "x"]}), "`hours.1`: \"x\" is not of type \"integer\""),
            (json!([1]), "expected one JSON object, found a list"),
            (json!("Oslo"), "expected one JSON object, found a text"),
        ] {
            let text = fit(&weather(), given.clone()).unwrap_err();
            assert!(text.contains(expected), "{given}: {text}");
            assert!(text.contains("\"city\": string, \"days\"?: integer 1 to 14"), "{text}");
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused_with_the_reason() {
        for (schema, reason) in [
            (json!({"type": "string"}), "object schema"),
            (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "/properties/a/type"),
            (json!({"type": "object", "properties": {"a": {"pattern": "("}}}), "/properties/a/pattern"),
        ] {
            let error = ArgumentChecker::new(&schema).unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert_eq!(ArgumentChecker::fault(&schema), Some(error));
        }
        assert_eq!(ArgumentChecker::fault(&weather()), None);
    }

    #[test]
    fn a3_what_may_be_nested_fits_on_the_stack_of_a_thread() {
        let mut parts: Map<String, Value> = (0..180)
            .map(|at| (format!("l{at}"), json!({"allOf": [{"$ref": format!("#/$defs/l{}", at + 1)}]})))
            .collect();
        parts.insert("l180".to_owned(), json!({"type": "string"}));
        for levels in [90, 180] {
            let first = json!({"$ref": format!("#/$defs/l{}", 180 - levels)});
            let schema = json!({"type": "object", "$defs": parts, "properties": {"a": first}});
            let error = fit(&schema, json!({"a": [1]})).unwrap_err();
            assert_eq!(error.contains("nest too deep"), levels == 180, "{error}");
        }
    }

    #[test]
    fn a4_arguments_that_take_a_pattern_long_are_checked() {
        let schema = json!({"type": "object", "properties": {"p0": {"pattern": "^(a|aa)+$"}}});
        let text = "a".repeat(20_000) + "b";
        assert!(fit(&schema, json!({"p0": text})).unwrap_err().contains("does not match"));
    }

    #[test]
    fn b6_every_place_of_a_value_is_coerced() {
        let schema = json!({
            "type": "object",
            "$defs": {"tree": {"type": "object", "properties": {
                "size": {"type": "integer"}, "branches": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            }}},
            "properties": {
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]},
                "tree": {"$ref": "#/$defs/tree"},
                "either": {"oneOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}, {"type": "null"}]},
            },
        });
        let given = json!({
            "map": {"a": "1", "b": 2.0}, "pair": ["3", "true"], "either": {"x": "4"},
            "tree": {"size": 5.0, "branches": [{"size": "6"}]},
        });
        let taken = json!({
            "map": {"a": 1, "b": 2}, "pair": [3, true], "either": {"x": 4},
            "tree": {"size": 5, "branches": [{"size": 6}]},
        });
        assert_eq!(fit(&schema, given), Ok(taken));
        let endless = json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}});
        assert_eq!(fit(&endless, json!({"a": 1.0})), Ok(json!({"a": 1.0})));
    }

    /// An enum as it is with documented variants, beside one without, behind a reference, and one that may be null.
    fn documented() -> Value {
        let category = json!({"oneOf": [
            {"type": "string", "const": "factual", "description": "A fact."},
            {"type": "string", "enum": ["communication", "structured_data"]},
        ]});
        json!({
            "type": "object",
            "$defs": {"category": category},
            "properties": {
                "category": category,
                "plain": {"type": "string", "enum": ["factual", "communication", "structured_data"]},
                "referred": {"$ref": "#/$defs/category"},
                "nullable": {"anyOf": [{"$ref": "#/$defs/category"}, {"type": "null"}]},
                "level": {"oneOf": [{"type": "integer", "const": 1}, {"type": "integer", "const": 2}]},
            },
            "required": ["nullable"],
        })
    }

    #[test]
    fn b6_a_documented_enum_is_coerced_as_a_plain_one() {
        for name in ["category", "plain", "referred", "nullable"] {
            for given in ["factual", " factual ", "Factual", "FACTUAL\n"] {
                let mut arguments = json!({"nullable": null});
                arguments[name] = json!(given);
                let fitted = fit(&documented(), arguments).unwrap();
                assert_eq!(fitted[name], "factual", "{name} {given}");
            }
        }
        assert_eq!(fit(&documented(), json!({"nullable": null, "level": "2"})).unwrap()["level"], 2);
        assert!(fit(&documented(), json!({"nullable": null, "level": "3"})).is_err());
        // Which of two is meant is not known.
        let alike =
            json!({"type": "object", "properties": {"a": {"oneOf": [{"const": "a"}, {"const": "A"}]}}});
        assert!(fit(&alike, json!({"a": " a"})).is_err());
    }

    #[test]
    fn b6_the_error_for_a_wrong_value_lists_the_allowed_ones() {
        let three = r#""factual", "communication" or "structured_data"; did you mean "factual"?"#;
        let four = r#""factual", "communication", "structured_data" or null; did you mean "factual"?"#;
        for (name, given, expected) in [
            ("category", json!("factul"), format!("`category`: \"factul\" is not one of {three}")),
            ("plain", json!("factul"), format!("`plain`: \"factul\" is not one of {three}")),
            ("referred", json!("factul"), format!("`referred`: \"factul\" is not one of {three}")),
            ("nullable", json!("factul"), format!("`nullable`: \"factul\" is not one of {four}")),
            ("level", json!(3), "`level`: 3 is not one of 1 or 2.".to_owned()),
            ("category", json!({"a": 1}), "{\"a\":1} is not one of \"factual\", ".to_owned()),
        ] {
            let mut arguments = json!({"nullable": null});
            arguments[name] = given;
            let text = fit(&documented(), arguments).unwrap_err();
            assert!(text.contains(&expected), "{text}\nwithout\n{expected}");
            assert!(
                text.contains(r#""category"?: "factual" | "communication" | "structured_data","#),
                "{text}"
            );
        }
    }

    #[test]
    fn b6_the_error_for_what_fits_no_alternative_lists_their_forms() {
        let shape = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
            {"type": "object", "properties": {"kind": {"const": "point"}}, "required": ["kind"]},
            {"type": "integer", "minimum": 0},
        ]});
        let schema = json!({
            "type": "object",
            "properties": {"shape": shape},
            "anyOf": [{"required": ["shape"]}, {"required": ["name"]}],
        });
        let text = fit(&schema, json!({"shape": {"kind": "square"}})).unwrap_err();
        let forms = r#"{"kind": "circle", "radius": number}, {"kind": "point"} or integer from 0"#;
        let expected = format!(r#"`shape`: {{"kind":"square"}} is none of the forms it may have: {forms}."#);
        assert!(text.contains(&expected), "{text}");
        let text = fit(&schema, json!({})).unwrap_err();
        assert!(
            text.contains(r#"{} is none of the forms it may have: {"shape": any} or {"name": any}"#),
            "{text}"
        );
    }

    #[test]
    fn b6_many_or_endless_alternatives_make_no_endless_answer() {
        let many: Vec<Value> =
            (0..10_000).map(|number| json!({"const": format!("option-{number}")})).collect();
        let mut again = vec![json!({"$ref": "#/properties/again"}); 10];
        again.push(json!({"type": "integer"}));
        let schema = json!({"type": "object", "properties": {
            "many": {"oneOf": many}, "plain": {"enum": many}, "again": {"anyOf": again},
        }});
        // The alternatives that lead back are followed to an end.
        assert!(fit(&schema, json!({"again": 3.0})).is_ok());
        for name in ["many", "plain"] {
            let mut arguments = json!({"again": "x"});
            arguments[name] = json!("æ".repeat(10_000));
            let text = fit(&schema, arguments).unwrap_err();
            assert!(text.len() < 20_000, "{name}: {}", text.len());
        }
    }

    #[test]
    fn a_secret_is_not_shown_where_it_is_none_of_several() {
        for pin in [
            json!({"enum": ["one", "two"], "writeOnly": true}),
            json!({"oneOf": [{"const": "one"}, {"const": "two"}], "writeOnly": true}),
        ] {
            let schema = json!({"type": "object", "properties": {"pin": pin}});
            let text = fit(&schema, json!({"pin": "twoo"})).unwrap_err();
            assert!(text.contains(r#"`pin`: the value is not one of "one" or "two"."#), "{text}");
        }
    }

    #[test]
    fn choices_are_tried_in_order() {
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}});
        assert_eq!(fit(&schema, json!({"a": "4"})), Ok(json!({"a": 4})));
        assert_eq!(fit(&schema, json!({"a": "true"})), Ok(json!({"a": true})));
        assert_eq!(fit(&schema, json!({"a": false})), Ok(json!({"a": false})));
    }
}
