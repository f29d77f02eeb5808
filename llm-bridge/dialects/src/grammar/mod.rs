//! Grammars of calls: what a model server is given so that a model can write nothing but a call.
//!
//! The text around the arguments is what the dialect's row writes, taken apart at a placeholder; so every row has a grammar, and none has
//! code of its own. Every string, list and number is bounded, so that each answer ends.

mod expression;
mod number;
mod scalar;
mod schema;
#[cfg(test)]
mod tests;
mod value;

use serde_json::{Map, Value, json};

use self::{
    expression::{Expression, MAX_TIMES, Obstacle, Rules, Written},
    scalar::text_without,
    schema::{Kind, Typed},
    value::{Notation, Values},
};
use crate::{
    literal,
    named::{Arguments, NamedStyle, TagStyle},
    offered::OfferedTool,
    table::{DelimiterKind, Dialect, Form},
};

/// What stands for a text or a name while a call is taken apart.
const TEXT: &str = "placeholder";
/// What stands for a number.
const NUMBER: u64 = 918_273_645;

/// Where a grammar begins to hold.
#[derive(Debug, Clone, Copy)]
enum Start<'o> {
    /// At the beginning of an answer.
    Answer,
    /// With the opening of the first call.
    Opening(&'o str),
    /// Behind it.
    AfterOpening(&'o str),
}

impl Dialect {
    /// A grammar in GBNF of an answer that is nothing but calls of these tools in this dialect: at least one, and at most `most`. Each
    /// is read back as a call whose arguments have the names, types, values, lengths and bounds that the tool's schema asks for. A schema
    /// that stands in itself is followed three times, and what is deeper is left out. Left to whoever checks the call are `pattern`,
    /// `format`, `multipleOf`, `not`, conditions, names and counts of members, `contains`, `uniqueItems`, and that only one of `oneOf`
    /// holds.
    ///
    /// llama.cpp takes it as `grammar`, SGLang as `ebnf`, vLLM as `structured_outputs.grammar`.
    ///
    /// `None` where a tool cannot be called in this dialect with what its schema requires, or the grammar would be larger than model
    /// servers take, or too long in the making: a tool may still be called without one, so whoever asks for it needs another way.
    /// Whatever the schemas are, it is made in seconds and has a few megabytes.
    pub fn grammar(&self, tools: &[OfferedTool], most: usize) -> Option<String> {
        self.gbnf(tools, most, Start::Answer)
    }

    /// The text with which every call of this dialect begins, as it is written first: a model that writes it is calling a tool. `None`
    /// where calls begin with nothing of their own, or with an ordinary word.
    pub fn opening(&self) -> Option<String> {
        let call = self.write(TEXT, &Map::new())?;
        let kinds = [DelimiterKind::Wrapper, DelimiterKind::Call, DelimiterKind::Inner];
        let delimiters = self.delimiters.iter().filter(|delimiter| kinds.contains(&delimiter.kind));
        let opening = delimiters.map(|delimiter| delimiter.text).find(|text| call.starts_with(text));
        let in_header = || self.header?.opening().filter(|opening| call.contains(opening.as_str()));
        opening.map(str::to_owned).or_else(in_header)
    }

    /// As [`grammar`](Self::grammar), from the [opening](Self::opening) of the first call on: for servers that let a model write what it likes
    /// until it has written that, as llama.cpp with `grammar_lazy`. `None` as there, and where the dialect has no opening.
    pub fn grammar_from_opening(&self, tools: &[OfferedTool], most: usize) -> Option<String> {
        self.gbnf(tools, most, Start::Opening(&self.opening()?))
    }

    /// As [`grammar_from_opening`](Self::grammar_from_opening) without the opening itself: for servers that match it apart, as the structural
    /// tags of vLLM and SGLang do.
    pub fn grammar_after_opening(&self, tools: &[OfferedTool], most: usize) -> Option<String> {
        self.gbnf(tools, most, Start::AfterOpening(&self.opening()?))
    }

    fn gbnf(&self, tools: &[OfferedTool], most: usize, start: Start<'_>) -> Option<String> {
        let mut rules = Rules::default();
        let root = self.answer(tools, most, start, &mut rules).ok()?;
        Some(rules.to_gbnf(&root))
    }

    fn answer(&self, tools: &[OfferedTool], most: usize, start: Start<'_>, rules: &mut Rules) -> Written {
        let any = json!({"type": "object"});
        let (mut first, mut calls) = (Vec::with_capacity(tools.len()), Vec::with_capacity(tools.len()));
        for tool in tools {
            let [before, arguments, after] =
                self.one_call(&tool.name, tool.schema.as_deref().unwrap_or(&any), rules)?;
            if let Start::Opening(opening) | Start::AfterOpening(opening) = start
                && let Expression::Text(before) = &before
            {
                let (_, rest) = before.split_once(opening).ok_or(Obstacle::NoValue)?;
                let rest = Expression::text(rest);
                first.push(Ok(rules.rule(Expression::sequence([rest, arguments.clone(), after.clone()]))?));
            }
            calls.push(Ok(rules.rule(Expression::sequence([before, arguments, after]))?));
        }
        let call = rules.one_of(calls)?;
        let more = rules.rule(Expression::sequence([Expression::text("\n"), call.clone()]))?;
        let more = more.repeated(0, most.clamp(1, MAX_TIMES) - 1);
        let (begin, call) = match start {
            Start::Answer => (self.end_of_thinking(rules)?, call),
            Start::Opening(opening) => (Expression::text(opening), rules.one_of(first)?),
            Start::AfterOpening(_) => (Expression::nothing(), rules.one_of(first)?),
        };
        Ok(Expression::sequence([begin, call, more]))
    }

    /// A template may have opened the model's thinking.
    fn end_of_thinking(&self, rules: &mut Rules) -> Written {
        let ends = self.thinking.iter().map(|(_, close)| Ok(Expression::text(format!("{close}\n\n"))));
        match rules.one_of(ends.collect()) {
            Err(Obstacle::NoValue) => Ok(Expression::nothing()),
            end => Ok(end?.optional()),
        }
    }

    /// A call: what stands before its arguments, the arguments, what stands after them.
    fn one_call(&self, name: &str, schema: &Value, rules: &mut Rules) -> Result<[Expression; 3], Obstacle> {
        let form = self.forms.first().ok_or(Obstacle::NoValue)?;
        let notation = match form {
            Form::Named(NamedStyle { arguments: Arguments::Literals(style), .. }) => {
                Notation::Literals(*style)
            }
            _ => Notation::Json,
        };
        let mut values = Values::new(schema, notation, rules);
        let types = values.types(&[schema])?;
        let objects = types.iter().filter(|typed| typed.kind == Kind::Object);
        let all = objects.map(|typed| self.arguments(form, typed, &mut values)).collect();
        let arguments = values.rules.one_of(all)?;
        let [before, after] = self.around_arguments(name, form).ok_or(Obstacle::NoValue)?;
        Ok([Expression::Text(before), arguments, Expression::Text(after)])
    }

    /// What stands before the arguments of a call, and after them.
    fn around_arguments(&self, name: &str, form: &Form) -> Option<[String; 2]> {
        let (sample, written) = match form {
            Form::Json(_) | Form::Named(NamedStyle { arguments: Arguments::Json, .. }) => {
                let sample = json!({TEXT: TEXT});
                let written = serde_json::to_string(&sample).ok()?;
                (sample, written)
            }
            Form::Named(NamedStyle { arguments: Arguments::Literals(style), .. }) => {
                let sample = json!({TEXT: NUMBER});
                let written = literal::write(*style, sample.as_object()?)?;
                (sample, written)
            }
            Form::Named(NamedStyle { arguments: Arguments::Tags(style), .. }) => {
                let line = self.line();
                (json!({TEXT: TEXT}), format!("{}{line}", style.write(TEXT, &TEXT.into(), line)?))
            }
        };
        let call = self.write(name, sample.as_object()?)?;
        let (before, after) = call.split_once(&written)?;
        Some([before, after].map(str::to_owned))
    }

    /// Arguments of one form of them.
    fn arguments<'s>(&self, form: &Form, typed: &Typed<'s>, values: &mut Values<'s, '_>) -> Written {
        match form {
            Form::Json(_) | Form::Named(NamedStyle { arguments: Arguments::Json, .. }) => values.typed(typed),
            // Written one by one, they come from schemas.
            _ if typed.fixed.is_some() => Err(Obstacle::NoValue),
            Form::Named(NamedStyle { arguments: Arguments::Literals(style), .. }) => {
                values.within(typed, |values| {
                    values.named_members(typed, |values, key, schemas| {
                        let head = literal::write_argument_key(*style, key).ok_or(Obstacle::NoValue)?;
                        Ok(Expression::sequence([Expression::text(head), values.value(schemas)?]))
                    })
                })
            }
            Form::Named(NamedStyle { arguments: Arguments::Tags(style), end, .. }) => {
                values.within(typed, |values| {
                    let ends = self.ends(style, end);
                    let write = |values: &mut Values<'s, '_>, key: &str, schemas: &[&'s Value]| {
                        values.in_tag(self, style, &ends, key, schemas)
                    };
                    let tags = values.members(typed, write)?.into_iter();
                    let tags = tags.map(|(tag, is_required)| if is_required { tag } else { tag.optional() });
                    Ok(Expression::sequence(tags))
                })
            }
        }
    }

    /// What stands between tags.
    fn line(&self) -> &'static str {
        if self.lines { "\n" } else { "" }
    }

    /// What would end a text between tags before its end.
    fn ends(&self, style: &TagStyle, end: &'static [&'static str]) -> Vec<&'static str> {
        let delimiters = self.delimiters.iter().map(|delimiter| delimiter.text);
        let all = delimiters.chain(self.close.iter().copied()).chain(end.iter().copied());
        let mut ends: Vec<&str> = all.chain([style.end, style.key.open()]).collect();
        ends.retain(|end| !end.is_empty());
        ends
    }
}

impl<'s> Values<'s, '_> {
    /// An argument in its tag.
    fn in_tag(
        &mut self,
        row: &Dialect,
        style: &TagStyle,
        ends: &[&str],
        key: &str,
        schemas: &[&'s Value],
    ) -> Written {
        self.read_back(row, key, TEXT)?;
        let line = row.line();
        // By what stands around them: a tag that states no type is the same for all.
        let mut tags: Vec<([String; 2], Vec<Written>)> = Vec::new();
        for typed in self.types(schemas)? {
            let sample = sample(&typed);
            let text = sample.as_str().map_or_else(|| sample.to_string(), str::to_owned);
            let tag = style.write(key, &sample, line).ok_or(Obstacle::NoValue)?;
            let (before, after) = tag.rsplit_once(&text).ok_or(Obstacle::NoValue)?;
            let around = [before.to_owned(), format!("{after}{line}")];
            let value = self.bare(row, ends, key, &typed);
            match tags.iter_mut().find(|(known, _)| *known == around) {
                Some((_, values)) => values.push(value),
                None => tags.push((around, vec![value])),
            }
        }
        let tags = tags.into_iter().map(|([before, after], values)| {
            let value = self.rules.one_of(values)?;
            Ok(Expression::sequence([Expression::text(before), value, Expression::text(after)]))
        });
        let tags = tags.collect();
        self.rules.one_of(tags)
    }

    /// A value as the text between tags.
    fn bare(&mut self, row: &Dialect, ends: &[&str], key: &str, typed: &Typed<'s>) -> Written {
        if typed.kind != Kind::String {
            return self.typed(typed);
        }
        match typed.fixed.and_then(Value::as_str) {
            Some(text) => self.read_back(row, key, text).map(|()| Expression::text(text)),
            None => {
                let counts = typed.counts("minLength", "maxLength");
                text_without(ends, counts, self.rules)
            }
        }
    }

    /// Whether an argument is read as it is written: not all names can be those of tags, nor can all texts stand between them.
    fn read_back(&mut self, row: &Dialect, key: &str, text: &str) -> Result<(), Obstacle> {
        self.rules.spend(16 + (key.len() + text.len()) / 8)?;
        let arguments = Map::from_iter([(key.to_owned(), text.into())]);
        row.call(TEXT, &arguments).map(|_| ()).ok_or(Obstacle::NoValue)
    }
}

/// A value of the type.
fn sample(typed: &Typed) -> Value {
    match typed.kind {
        Kind::String => TEXT.into(),
        Kind::Boolean => true.into(),
        Kind::Null => Value::Null,
        Kind::Array => json!([NUMBER]),
        Kind::Object => json!({TEXT: NUMBER}),
        Kind::Integer | Kind::Number => NUMBER.into(),
    }
}
