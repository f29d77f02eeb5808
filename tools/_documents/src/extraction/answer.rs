//! Reads the answer of a model, however it is written: JSON lines, one object with lists, in a fence, with words around, cut off.

use serde_json::{Deserializer, Map, Value};

use super::{Extracted, ExtractedName, ExtractedRelation};

/// At no more places of an answer an object is looked for. A model that does not come to an end says the same again and again.
const MAX_TRIES: usize = 1000;

// The keys that are asked for come first; the others are what models write instead.
const NAME: [&str; 5] = ["name", "entity", "entity_name", "text", "label"];
const KIND: [&str; 4] = ["kind", "type", "entity_type", "category"];
const SUBJECT: [&str; 5] = ["subject", "source", "from", "head", "entity1"];
const RELATION: [&str; 6] = ["relation", "predicate", "relationship", "relation_type", "type", "verb"];
const OBJECT: [&str; 5] = ["object", "target", "to", "tail", "entity2"];
const LIST_OF_NAMES: [&str; 2] = ["names", "entities"];

/// What an answer says; nothing where there is no object in it that is whole.
pub(super) fn said(answer: &str) -> Option<Extracted> {
    let mut said = Extracted::default();
    let (mut rest, mut is_readable) = (answer, false);
    for _ in 0..MAX_TRIES {
        let Some(object) = rest.find('{').and_then(|at| rest.get(at..)) else { break };
        let mut values = Deserializer::from_str(object).into_iter::<Map<String, Value>>();
        let end = match values.next() {
            Some(Ok(value)) => {
                is_readable = true;
                said.object(&value);
                values.byte_offset()
            }
            // What is inside may be whole all the same.
            _ => 1,
        };
        rest = object.get(end..).unwrap_or_default();
    }
    is_readable.then_some(said)
}

impl Extracted {
    fn object(&mut self, object: &Map<String, Value>) {
        let text = |keys: &[&str]| {
            keys.iter().find_map(|key| object.get(*key)).and_then(Value::as_str).map(str::to_owned)
        };
        if let (Some(subject), Some(relation), Some(object)) =
            (text(&SUBJECT), text(&RELATION), text(&OBJECT))
        {
            self.relations.push(ExtractedRelation { subject, relation, object });
        } else if let Some(name) = text(&NAME) {
            self.names.push(ExtractedName { name, kind: text(&KIND).unwrap_or_default() });
        } else {
            for (key, value) in object {
                self.list(value, LIST_OF_NAMES.contains(&key.as_str()));
            }
        }
    }

    /// What is below a key: objects, and of names also texts by themselves, or of relations three texts in a row.
    fn list(&mut self, value: &Value, of_names: bool) {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(values) => match values.as_slice() {
                [Value::String(subject), Value::String(relation), Value::String(object)] if !of_names => {
                    let [subject, relation, object] = [subject, relation, object].map(Clone::clone);
                    self.relations.push(ExtractedRelation { subject, relation, object });
                }
                values => values.iter().for_each(|value| self.list(value, of_names)),
            },
            Value::String(name) if of_names => {
                self.names.push(ExtractedName { name: name.clone(), kind: String::new() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: &str) -> Option<Vec<String>> {
        let said = said(answer)?;
        let names = said.names.iter().map(|it| format!("{} {}", it.name, it.kind).trim().to_owned());
        let relations =
            said.relations.iter().map(|it| format!("{}-{}-{}", it.subject, it.relation, it.object));
        Some(names.chain(relations).collect())
    }

    #[test]
    fn p6_an_answer_is_read_however_it_is_written() {
        let all = &["Ada person", "Uji place", "Ada-lives in-Uji"][..];
        for (answer, expected) in [
            (
                "{\"name\": \"Ada\", \"kind\": \"person\"}\n{\"name\": \"Uji\", \"kind\": \"place\"}\n{\"subject\": \"Ada\", \"relation\": \"lives in\", \"object\": \"Uji\"}",
                all,
            ),
            (
                "Here it is:\n```json\n{\"entities\": [{\"entity\": \"Ada\", \"type\": \"person\"}, {\"name\": \"Uji\", \"category\": \"place\"}],\n \"relationships\": [{\"source\": \"Ada\", \"type\": \"lives in\", \"target\": \"Uji\"}]}\n```\nI hope that helps {you}!",
                all,
            ),
            (
                "[{\"name\":\"Ada\",\"kind\":\"person\"},{\"name\":\"Uji\",\"kind\":\"place\"},{\"head\":\"Ada\",\"relation\":\"lives in\",\"tail\":\"Uji\"}]",
                all,
            ),
            // Cut off inside a list, and inside an object.
            (
                "{\"names\": [{\"name\": \"Ada\", \"kind\": \"person\"}, {\"name\": \"Uji\", \"kind\": \"place\"}], \"relations\": [{\"subject\": \"Ada\", \"relation\": \"lives in\", \"object\": \"Uji\"}, {\"subject\": \"Ad",
                all,
            ),
            (
                "{\"names\": [\"Ada\", \"Uji\"], \"relations\": [[\"Ada\", \"lives in\", \"Uji\"]]}",
                &["Ada", "Uji", "Ada-lives in-Uji"],
            ),
            ("{\"names\": [\"A\", \"B\", \"C\"]}", &["A", "B", "C"]),
            ("{{\"name\": \"Ada\"}}", &["Ada"]),
            // Of what is wrong only that is left out.
            (
                "{\"name\": 7} {\"name\": \"Ada\", \"kind\": null} {\"subject\": \"Ada\", \"relation\": [], \"object\": {}} {\"x\": \"y\"}",
                &["Ada"],
            ),
            ("{}", &[]),
        ] {
            assert_eq!(shown(answer).unwrap(), expected, "{answer}");
        }
        for answer in ["", "I cannot do that.", "{", "{\"name\": \"Ada", "{name: Ada}", "]}{[", "null"] {
            assert_eq!(said(answer), None, "{answer}");
        }
    }

    #[test]
    fn p6_no_answer_is_too_much() {
        for piece in [
            "{",
            "{\"a\":",
            "{\"names\":[",
            "{\"name\":\"A\"}",
            "[[",
            "{\"",
            "\\\"{",
            "{\"a\":\"",
            "é{}",
            "{} ",
        ] {
            let said = said(&piece.repeat(20_000)).unwrap_or_default();
            assert!(said.names.len() <= MAX_TRIES, "{piece}");
        }
    }
}
