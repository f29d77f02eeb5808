//! Values as schemas allow them, in the notation of a dialect.

use std::{
    collections::{BTreeSet, HashMap},
    mem, ptr,
};

use serde_json::{Map, Value};

use super::{
    expression::{Expression, MAX_TIMES, Obstacle, Rules, Written},
    number,
    scalar::{text_of, text_without},
    schema::{self, Kind, Typed},
};
use crate::literal::{self, LiteralStyle};

/// How deep values nest. Deeper ones no reader takes.
const MAX_DEPTH: usize = 48;
/// How often a schema may stand in itself. What is deeper is left out.
const MAX_RECURSION: usize = 3;
/// From this depth on, a value without a schema is a simple one.
const SIMPLE_DEPTH: usize = 2;
/// How many items a list has, where the schema does not say.
const MAX_ITEMS: usize = 16;
/// How many members an object has where its schema names none.
const MAX_FREE_MEMBERS: usize = 8;
/// How long their names are, in characters.
const MAX_NAME: usize = 64;
/// How many its schema may name: llama.cpp follows those that are not required by recursion.
const MAX_MEMBERS: usize = 1024;
const HEX: &[(char, char)] = &[('0', '9'), ('a', 'f')];
const ESCAPES: &[(char, char)] = &[('"', '"'), ('\\', '\\'), ('n', 'n'), ('r', 'r'), ('t', 't')];
const NAME: &[(char, char)] = &[('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')];

/// How values are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Notation {
    Json,
    Literals(LiteralStyle),
}

/// Schemas that all apply, by where they are.
type Place = Vec<*const Map<String, Value>>;

/// Values of the parts of one schema.
pub(super) struct Values<'s, 'r> {
    pub(super) rules: &'r mut Rules,
    /// The whole schema, for references.
    root: &'s Value,
    notation: Notation,
    /// The schemas of the lists and objects around what is being written, and how many of them stand in themselves.
    around: Vec<Place>,
    recursion: usize,
    /// What has been written of schemas, where so many stand in themselves and values may have parts or not.
    known: HashMap<(Place, Kind, usize, bool), Written>,
}

impl<'s, 'r> Values<'s, 'r> {
    pub(super) fn new(root: &'s Value, notation: Notation, rules: &'r mut Rules) -> Self {
        Self { rules, root, notation, around: Vec::new(), recursion: 0, known: HashMap::new() }
    }

    /// The types of the values to which these schemas all apply.
    pub(super) fn types(&mut self, schemas: &[&'s Value]) -> Result<Vec<Typed<'s>>, Obstacle> {
        schema::typed(self.root, schemas, self.around.len() < SIMPLE_DEPTH, self.rules)
    }

    /// The values to which these schemas all apply.
    pub(super) fn value(&mut self, schemas: &[&'s Value]) -> Written {
        let types = self.types(schemas)?;
        let all = types.iter().map(|typed| self.typed(typed)).collect();
        self.rules.one_of(all)
    }

    /// Values of one type.
    pub(super) fn typed(&mut self, typed: &Typed<'s>) -> Written {
        self.rules.spend(4)?;
        if let Some(value) = typed.fixed {
            return self.fixed(value);
        }
        match typed.kind {
            Kind::Null => self.fixed(&Value::Null),
            Kind::Boolean => {
                let both = [true, false].map(|value| self.fixed(&value.into()));
                self.rules.one_of(both.into())
            }
            Kind::Integer => {
                let number = number::integer(&typed.bounds(), self.rules)?;
                self.rules.rule(number)
            }
            Kind::Number => {
                let number = number::number(&typed.bounds(), self.rules)?;
                self.rules.rule(number)
            }
            Kind::String => self.string(typed),
            Kind::Array => self.within(typed, |values| values.array(typed)),
            Kind::Object => self.within(typed, |values| values.object(typed)),
        }
    }

    /// Writes a list or object, if that has not been done.
    pub(super) fn within(&mut self, typed: &Typed<'s>, write: impl FnOnce(&mut Self) -> Written) -> Written {
        let mut place: Place = typed.parts.iter().copied().map(ptr::from_ref).collect();
        place.sort_unstable();
        let recursion = self.recursion + usize::from(self.around.contains(&place));
        if recursion > MAX_RECURSION {
            return Err(Obstacle::NoValue);
        }
        if self.around.len() == MAX_DEPTH {
            return Err(Obstacle::TooLarge);
        }
        self.rules.spend(1 + place.len())?;
        let key = (place.clone(), typed.kind, recursion, self.around.len() < SIMPLE_DEPTH);
        if let Some(written) = self.known.get(&key) {
            return written.clone();
        }
        self.around.push(place);
        let before = mem::replace(&mut self.recursion, recursion);
        let written = write(self);
        self.recursion = before;
        self.around.pop();
        self.known.insert(key, written.clone());
        written
    }

    fn fixed(&self, value: &Value) -> Written {
        let text = match self.notation {
            Notation::Json => serde_json::to_string(value).ok(),
            Notation::Literals(style) => literal::write_value(style, value),
        };
        text.map(Expression::Text).ok_or(Obstacle::NoValue)
    }

    fn string(&mut self, typed: &Typed) -> Written {
        let counts = typed.counts("minLength", "maxLength");
        let own = match self.notation {
            Notation::Literals(style) => style.quotes.first(),
            Notation::Json => None,
        };
        let (quote, inner) = match own {
            Some(quote) => (*quote, text_without(&[quote], counts, self.rules)?),
            None => {
                let plain = Expression::Except { chars: BTreeSet::from(['"', '\\']), lines: false };
                let escape =
                    Expression::sequence([Expression::text("\\"), Expression::Within(ESCAPES.to_vec())]);
                let mut chars = vec![plain, escape];
                if matches!(self.notation, Notation::Json) {
                    let digits = Expression::Within(HEX.to_vec()).repeated(2, 0);
                    // Not those of surrogates, which mean something in pairs only.
                    chars.push(Expression::sequence([Expression::text("\\u00"), digits]));
                }
                ("\"", text_of(Expression::OneOf(chars), counts, self.rules)?)
            }
        };
        let quote = Expression::text(quote);
        self.rules.rule(Expression::sequence([quote.clone(), inner, quote]))
    }

    fn array(&mut self, typed: &Typed<'s>) -> Written {
        let (least, most) = typed.counts("minItems", "maxItems");
        if most.is_some_and(|most| most < least) {
            return Err(Obstacle::NoValue);
        }
        if least > MAX_TIMES {
            return Err(Obstacle::TooLarge);
        }
        let mut most = most.unwrap_or(MAX_ITEMS.max(least)).min(MAX_TIMES);
        // The first item, and those with a schema each, are written one by one.
        let mut items = Vec::new();
        let positions = typed.positions();
        while items.len() < positions.max(1).min(most) {
            match self.value(&typed.item(items.len())) {
                Ok(item) => items.push(item),
                Err(Obstacle::NoValue) => most = items.len(),
                Err(Obstacle::TooLarge) => return Err(Obstacle::TooLarge),
            }
        }
        let mut rest = Expression::nothing();
        if items.len() < most {
            match self.value(&typed.item(positions)) {
                Ok(item) => {
                    let more = self.rules.rule(Expression::sequence([self.separator(), item]))?;
                    let least = least.saturating_sub(items.len());
                    rest = more.repeated(least, most - items.len() - least);
                }
                Err(Obstacle::NoValue) => most = items.len(),
                Err(Obstacle::TooLarge) => return Err(Obstacle::TooLarge),
            }
        }
        if most < least {
            return Err(Obstacle::NoValue);
        }
        for (at, item) in items.into_iter().enumerate().rev() {
            let separator = if at == 0 { Expression::nothing() } else { self.separator() };
            rest = self.rules.rule(Expression::sequence([separator, item, rest]))?;
            rest = if at < least { rest } else { rest.optional() };
        }
        self.rules.rule(Expression::sequence([Expression::text("["), rest, Expression::text("]")]))
    }

    fn object(&mut self, typed: &Typed<'s>) -> Written {
        let named = typed.members(self.rules)?;
        let members = if named.is_empty() {
            match self.free_members(&typed.other_members()) {
                Err(Obstacle::NoValue) => Expression::nothing(),
                members => members?,
            }
        } else {
            self.named_members(typed, |values, key, value| {
                let key = values.key(key).ok_or(Obstacle::NoValue)?;
                Ok(Expression::sequence([key, values.value(value)?]))
            })?
        };
        self.rules.rule(Expression::sequence([Expression::text("{"), members, Expression::text("}")]))
    }

    /// The members that a schema names, in their order, each as `write` has it, with separators between.
    pub(super) fn named_members(
        &mut self,
        typed: &Typed<'s>,
        write: impl Fn(&mut Self, &str, &[&'s Value]) -> Written,
    ) -> Written {
        let members = self.members(typed, write)?;
        let separator = self.separator();
        in_order(members, &separator, self.rules)
    }

    /// The members that a schema names, each as `write` has it and whether it has to be there, without those that are not written and need
    /// not be.
    pub(super) fn members(
        &mut self,
        typed: &Typed<'s>,
        write: impl Fn(&mut Self, &str, &[&'s Value]) -> Written,
    ) -> Result<Vec<(Expression, bool)>, Obstacle> {
        let named = typed.members(self.rules)?;
        if named.len() > MAX_MEMBERS {
            return Err(Obstacle::TooLarge);
        }
        let mut members = Vec::with_capacity(named.len());
        for member in named {
            match write(self, member.name, &member.schemas) {
                Ok(written) => members.push((self.rules.rule(written)?, member.is_required)),
                Err(Obstacle::NoValue) if !member.is_required => {}
                Err(obstacle) => return Err(obstacle),
            }
        }
        Ok(members)
    }

    /// Members that no schema names.
    fn free_members(&mut self, schemas: &[&'s Value]) -> Written {
        let name = match self.notation {
            Notation::Json => Expression::Except { chars: BTreeSet::from(['"', '\\']), lines: false },
            Notation::Literals(_) => Expression::Within(NAME.to_vec()),
        };
        let name = name.repeated(1, MAX_NAME - 1);
        let (open, close) = match self.notation {
            Notation::Literals(style) if !style.quotes.is_empty() => ("", ":"),
            _ => ("\"", "\": "),
        };
        let open = Some(open).filter(|open| !open.is_empty()).map(Expression::text);
        let value = self.value(schemas)?;
        let member = Expression::sequence(open.into_iter().chain([name, Expression::text(close), value]));
        let member = self.rules.rule(member)?;
        let more = self.rules.rule(Expression::sequence([self.separator(), member.clone()]))?;
        let members = Expression::sequence([member, more.repeated(0, MAX_FREE_MEMBERS - 1)]);
        Ok(self.rules.rule(members)?.optional())
    }

    /// What stands before a member's value.
    fn key(&self, key: &str) -> Option<Expression> {
        match self.notation {
            Notation::Json => {
                let key = serde_json::to_string(key).ok()?;
                Some(Expression::sequence([Expression::text(key + ":"), Expression::text(" ").optional()]))
            }
            Notation::Literals(style) => literal::write_member_key(style, key).map(Expression::Text),
        }
    }

    fn separator(&self) -> Expression {
        match self.notation {
            Notation::Json => Expression::sequence([Expression::text(","), Expression::text(" ").optional()]),
            Notation::Literals(style) => Expression::text(style.separator()),
        }
    }
}

/// Members in their order, those that are not required or not, with separators between.
fn in_order(members: Vec<(Expression, bool)>, separator: &Expression, rules: &mut Rules) -> Written {
    // What follows when nothing has been written yet, and when something has.
    let (mut first, mut later) = (Expression::nothing(), Expression::nothing());
    for (member, is_required) in members.into_iter().rev() {
        let begun = Expression::sequence([member.clone(), later.clone()]);
        let next = rules.rule(Expression::sequence([separator.clone(), member]))?;
        (first, later) = if is_required {
            (begun, Expression::sequence([next, later]))
        } else {
            (Expression::OneOf(vec![begun, first]), Expression::sequence([next.optional(), later]))
        };
        (first, later) = (rules.rule(first)?, rules.rule(later)?);
    }
    Ok(first)
}
