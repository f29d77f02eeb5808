//! Dialects whose arguments are pairs of names and literals.

use super::{THINK, spaced};
use crate::{
    json::JsonStyle,
    literal::LiteralStyle,
    named::{Arguments, Head, NamedStyle},
    table::{Delimiter, Dialect, Form},
};

/// Calls of Python, with such a head.
pub(super) const fn python(head: Head, list: bool) -> Form {
    let literals = LiteralStyle { assign: b'=', close: b')', quotes: &[] };
    Form::Named(NamedStyle { head, arguments: Arguments::Literals(literals), end: &[], list })
}

const PYTHON: Form = python(Head::between("", &["("]), false);
pub(crate) const LIST: Form = python(Head::between("", &["("]), true);

const fn braces(open: &'static str, quotes: &'static [&'static str]) -> Form {
    let arguments = Arguments::Literals(LiteralStyle { assign: b':', close: b'}', quotes });
    Form::Named(NamedStyle { head: Head::between(open, &["{"]), arguments, end: &[], list: false })
}

/// The string delimiters of Gemma 4, and that of the models it comes from.
const QUOTES: &[&str] = &["<|\"|>", "<ctrl46>"];
/// As braces, in the brackets of an ordinary call.
const PARENTHESES: Form = Form::Named(NamedStyle {
    head: Head::between("call:", &["("]),
    arguments: Arguments::Literals(LiteralStyle { assign: b':', close: b')', quotes: QUOTES }),
    end: &[],
    list: false,
});

pub(super) const ROWS: &[Dialect] = &[
    // Calls without the brackets count in a fence whose first line says that it holds calls, as Gemma 3 writes them.
    Dialect::new("pythonic", &[LIST, PYTHON]),
    Dialect::new("llama4_pythonic", &[LIST])
        .delimiters(&[Delimiter::wrapper("<|python_start|>")])
        .close(&["<|python_end|>"]),
    Dialect::new("lfm2", &[LIST, Form::Json(JsonStyle::PLAIN)])
        .delimiters(&[Delimiter::wrapper("<|tool_call_start|>")])
        .close(&["<|tool_call_end|>"])
        .results("<|tool_response_start|>{content}<|tool_response_end|>")
        .thinking(THINK),
    Dialect::new("olmo3", &[PYTHON, LIST])
        // The second is a tag of Gemma 3.
        .delimiters(&[Delimiter::wrapper("<function_calls>"), Delimiter::wrapper("<tool_code>")])
        .close(&["</function_calls>", "</tool_code>"])
        .on_lines(),
    Dialect::new("gorilla", &[PYTHON, LIST]).delimiters(&[Delimiter::wrapper("<<function>>")]),
    Dialect::new("nexusraven", &[python(spaced(&["("]), false)])
        .delimiters(&[Delimiter::line("Call:")])
        .close(&["<bot_end>"]),
    Dialect::new("gemma4", &[braces("call:", QUOTES), PARENTHESES, braces(":", QUOTES), braces("", QUOTES)])
        .delimiters(&[Delimiter::wrapper("<|tool_call>"), Delimiter::line("call:")])
        .noise(&["<turn|>", "<eos>"])
        .starts(&["<start_of_turn>model\n", "<|turn>model\n"])
        .stops(&["<end_of_turn>", "<eos>"])
        .close(&["<tool_call|>"])
        // The second is that of MedGemma.
        .thinking(&[("<|channel>thought\n", "<channel|>"), ("<unused94>thought\n", "<unused95>")])
        .results("<|tool_response>response:{name}{value:<|\"|>{content}<|\"|>}<tool_response|>"),
    Dialect::new("functiongemma", &[braces("call:", &["<escape>"])])
        .delimiters(&[Delimiter::wrapper("<start_function_call>")])
        .close(&["<end_function_call>"])
        .results("<start_function_response>response:{name}{value:<escape>{content}<escape>}<end_function_response>"),
];
