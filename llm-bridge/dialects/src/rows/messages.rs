//! Dialects that speak in messages: a header says whom each is for.

use crate::{
    header::{HeaderStyle, Kind},
    json::JsonStyle,
    named::{Arguments, Head, NamedStyle, TagStyle},
    table::{Delimiter, Dialect, Form},
};

/// Where a header may begin. The first has been written by the prompt, often.
const HEADERS: &[Delimiter] = &[Delimiter::header("<|start|>"), Delimiter::header("<|channel|>")];

/// `<|start|>assistant<|channel|>commentary to=f <|constrain|>json<|message|>`, and parts of it.
pub(crate) const HEADER: HeaderStyle = HeaderStyle {
    ends: &[
        ("<|message|>", Kind::ByFields),
        ("<|content_text|>", Kind::Text),
        ("<|content_thinking|>", Kind::Thinking),
        ("<|content_invoke_tool_json|>", Kind::Call),
    ],
    within: &["<|channel|>", "<|constrain|>"],
    turn: "<|start|>",
    stop: "<|end|>",
    next: "<|start|>assistant",
    format: "<|constrain|>",
    words: &["assistant", "analysis", "commentary", "final", "thought", "json", "xml", "code", "text"],
    thinking: &["analysis", "thought"],
    address: "to=",
    begun: &[],
    oneself: "self",
    people: &["user", "all", "assistant", "commentary"],
    namespace: "",
    call: "<|start|>assistant to={name}<|message|>",
};
const HARMONY: HeaderStyle = HeaderStyle {
    namespace: "functions.",
    begun: &["commentary to=", "analysis to="],
    call: "<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>",
    ..HEADER
};
const BEAM: HeaderStyle = HeaderStyle {
    call: "<|start|>assistant to={name}<|channel|>analysis <|constrain|>xml<|message|>",
    ..HEADER
};

const MUSE_HEADER: HeaderStyle = HeaderStyle {
    ends: &[("<|message|>", Kind::ByFields), ("<atem:function_calls>", Kind::ByFields)],
    ..HEADER
};

const MUSE: &[Form] = &[Form::Named(NamedStyle {
    head: Head::attribute("<atem:invoke ", "name", ">"),
    arguments: Arguments::Tags(
        TagStyle::new(Head::attribute("<atem:parameter ", "name", ">"), "</atem:parameter>")
            .verbatim()
            .guessed(),
    ),
    end: &["</atem:invoke>"],
    list: false,
})];

pub(super) const ROWS: &[Dialect] = &[
    Dialect::new(
        "harmony",
        &[Form::Named(NamedStyle {
            head: Head::Recipient,
            arguments: Arguments::Json,
            end: &[],
            list: false,
        })],
    )
    .header(&HARMONY)
    .delimiters(HEADERS)
    .close(&["<|call|>", "<|end|>", "<|return|>"])
    .noise(&["<|call|>", "<|end|>", "<|return|>", "<|message|>"])
    .results("<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{content}<|end|>"),
    Dialect::new(
        "beam",
        &[Form::Named(NamedStyle {
            head: Head::Recipient,
            arguments: Arguments::Tags(
                TagStyle::new(Head::attribute("<rfl:parameter ", "name", ">"), "</rfl:parameter>").on_lines(),
            ),
            end: &[],
            list: false,
        })],
    )
    .header(&BEAM)
    .delimiters(HEADERS)
    .close(&["<|call|>", "<|end|>"]),
    Dialect::new("muse", MUSE)
        .header(&MUSE_HEADER)
        .delimiters(&[
            Delimiter::header("<|start|>"),
            Delimiter::header("<|channel|>"),
            Delimiter::section("<atem:function_calls>"),
        ])
        .close(&["</atem:function_calls><|eom|>", "</atem:function_calls>", "<|eom|>"])
        .noise(&["<|eom|>", "<|eot|>"]),
    Dialect::new("inkling", &[Form::Json(JsonStyle::new(&["name"], &["args", "arguments"]))])
        .header(&HEADER)
        .delimiters(&[
            Delimiter::wrapper("<|content_invoke_tool_json|>"),
            Delimiter::header("<|message_model|>"),
        ])
        .close(&["<|end_message|>"])
        .thinking(&[("<|content_thinking|>", "<|end_message|>")])
        .noise(&[
            "<|end_message|>",
            "<|content_text|>",
            "<|content_model_end_sampling|>",
            "<|content_tool_error|>",
        ]),
];
