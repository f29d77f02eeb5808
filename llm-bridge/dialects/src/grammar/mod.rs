//! Grammars of calls: what a model server is given so that a model can write nothing but a call.
//!
//! The text around the arguments is what the dialect's row writes, taken apart at a placeholder; so every row has a grammar, and none has
//! code of its own. Every string, list and number is bounded, so that each answer ends.

mod expression;
mod scalar;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use self::{
    expression::{Expression, Rules},
    scalar::{char_without, text_of},
    schema::{Notation, Typed, Values, in_order, members_of, one_of},
};
use crate::{
    literal,
    named::{Arguments, NamedStyle, TagStyle},
    offered::OfferedTool,
    table::{Dialect, Form},
};

/// What stands for a text or a name while a call is taken apart.
const TEXT: &str = "placeholder";
/// What stands for a number.
const NUMBER: u64 = 918_273_645;

impl Dialect {
    /// A grammar in GBNF of an answer that is nothing but calls of these tools in this dialect: at least one, and at most `most`. Each
    /// is read back as a call whose arguments have the names, types, values and lengths that the tool's schema asks for; patterns and
    /// further bounds of numbers are left to whoever checks the call.
    ///
    /// llama.cpp takes it as `grammar`, SGLang as `ebnf`, vLLM as `structured_outputs.grammar`.
    ///
    /// `None` where a tool cannot be called in this dialect with what its schema requires, or the grammar would have too many rules.
    pub fn grammar(&self, tools: &[OfferedTool], most: usize) -> Option<String> {
        let mut rules = Rules::default();
        let root = self.answer(tools, most, &mut rules)?;
        Some(rules.to_gbnf(&root))
    }

    fn answer(&self, tools: &[OfferedTool], most: usize, rules: &mut Rules) -> Option<Expression> {
        let any = json!({"type": "object"});
        let calls: Option<Vec<_>> = tools
            .iter()
            .map(|tool| self.one_call(&tool.name, tool.schema.as_deref().unwrap_or(&any), rules))
            .collect();
        let call = one_of(calls?, rules)?;
        let mut calls = call.clone();
        if most > 1 {
            let more = rules.rule(Expression::Sequence(vec![Expression::text("\n"), call.clone()]))?;
            calls = Expression::Sequence(vec![call, Expression::Repeat(Box::new(more), 0, most - 1)]);
        }
        // A template may have opened the model's thinking.
        let ends: Vec<_> =
            self.thinking.iter().map(|(_, close)| Expression::text(format!("{close}\n\n"))).collect();
        Some(match one_of(ends, rules) {
            Some(end) => Expression::Sequence(vec![end.optional(), calls]),
            None => calls,
        })
    }

    fn one_call(&self, name: &str, schema: &Value, rules: &mut Rules) -> Option<Expression> {
        let arguments = Values { rules, root: schema, notation: Notation::Json }.kinds(schema, 0)?;
        let arguments = arguments.into_iter().find(|typed| typed.kind == "object")?;
        let (placeholder, arguments) = match self.forms.first()? {
            Form::Json(_) | Form::Named(NamedStyle { arguments: Arguments::Json, .. }) => {
                let sample = json!({TEXT: TEXT});
                let written = serde_json::to_string(&sample).ok()?;
                let mut values = Values { rules, root: schema, notation: Notation::Json };
                ((sample, written), values.typed(&arguments, 0)?)
            }
            Form::Named(NamedStyle { arguments: Arguments::Literals(style), .. }) => {
                let sample = json!({TEXT: NUMBER});
                let written = literal::write(*style, sample.as_object()?)?;
                let notation = Notation::Literals(*style);
                let mut values = Values { rules, root: schema, notation };
                let mut members = Vec::new();
                for (key, of, is_required) in members_of(arguments.schema()) {
                    let head = literal::write_argument_key(*style, key);
                    match head.zip(values.value(of, 1)) {
                        Some((head, value)) => {
                            let member = Expression::Sequence(vec![Expression::text(head), value]);
                            members.push((member, is_required));
                        }
                        None if is_required => return None,
                        None => {}
                    }
                }
                let separator = Expression::text(style.separator());
                ((sample, written), in_order(members, &separator, rules)?)
            }
            Form::Named(NamedStyle { arguments: Arguments::Tags(style), end, .. }) => {
                let line = if self.lines { "\n" } else { "" };
                let sample = json!({TEXT: TEXT});
                let written = format!("{}{line}", style.write(TEXT, &TEXT.into(), line)?);
                let ends: Vec<&str> = self.ends(style, end);
                let mut members = Vec::new();
                for (key, of, is_required) in members_of(arguments.schema()) {
                    let mut values = Values { rules, root: schema, notation: Notation::Json };
                    match values.in_tag(style, &ends, line, key, of) {
                        Some(member) if is_required => members.push(member),
                        Some(member) => members.push(rules.rule(member)?.optional()),
                        None if is_required => return None,
                        None => {}
                    }
                }
                ((sample, written), Expression::Sequence(members))
            }
        };
        let (sample, written) = placeholder;
        let call = self.write(name, sample.as_object()?)?;
        let (before, after) = call.split_once(&written)?;
        rules.rule(Expression::Sequence(vec![Expression::text(before), arguments, Expression::text(after)]))
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

impl Values<'_> {
    /// An argument in its tag.
    fn in_tag(
        &mut self,
        style: &TagStyle,
        ends: &[&str],
        line: &str,
        key: &str,
        schema: &Value,
    ) -> Option<Expression> {
        let kinds = self.kinds(schema, 1)?;
        // A tag that states no type is the same for all texts and numbers.
        let tags: Option<Vec<_>> = kinds
            .iter()
            .map(|typed| {
                let sample = sample(typed);
                let text = sample.as_str().map_or_else(|| sample.to_string(), str::to_owned);
                let tag = format!("{}{line}", style.write(key, &sample, line)?);
                let (before, after) = tag.rsplit_once(&text)?;
                let value = self.bare(typed, ends)?;
                Some(Expression::Sequence(vec![Expression::text(before), value, Expression::text(after)]))
            })
            .collect();
        one_of(tags?, self.rules)
    }

    /// A value as the text between tags.
    fn bare(&mut self, typed: &Typed, ends: &[&str]) -> Option<Expression> {
        if typed.kind != "string" {
            return self.typed(typed, 1);
        }
        match typed.fixed() {
            Some(text) => {
                let is_whole = !ends.iter().any(|end| text.contains(end));
                is_whole.then(|| Expression::text(text))
            }
            None => text_of(char_without(ends, typed.schema()), typed.schema(), self.rules),
        }
    }
}

/// A value of the type.
fn sample(typed: &Typed) -> Value {
    match typed.kind {
        "string" => TEXT.into(),
        "boolean" => true.into(),
        "null" => Value::Null,
        "array" => json!([NUMBER]),
        "object" => json!({TEXT: NUMBER}),
        _ => NUMBER.into(),
    }
}
