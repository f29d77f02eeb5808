//! Dialects whose calls are the tool's name and a JSON object with its arguments.

use super::{THINK, spaced};
use crate::{
    json::JsonStyle,
    named::{Arguments, Head, NamedStyle},
    table::{Delimiter, Dialect, Form},
};

const fn json(head: Head, end: &'static [&'static str]) -> Form {
    Form::Named(NamedStyle { head, arguments: Arguments::Json, end, list: false })
}

pub(super) const ROWS: &[Dialect] = &[
    Dialect::new(
        "mistral",
        &[
            json(
                Head::Between {
                    open: "",
                    close: &["[ARGS]", ""],
                    before: "",
                    id: "[CALL_ID]",
                    written_id: "",
                },
                &[],
            ),
            Form::Json(JsonStyle::PLAIN.in_array()),
        ],
    )
    .delimiters(&[
        Delimiter::wrapper("[TOOL_CALLS]"),
        Delimiter::name("[ARGS]{"),
        Delimiter::name("[TOOL_CALLS]{"),
        Delimiter::name("{"),
    ])
    .close(&["[/TOOL_CALLS]"])
    .open_ended()
    .thinking(&[("[THINK]", "[/THINK]")])
    .stops(&["</s>"])
    .results("[TOOL_RESULTS]{content}[/TOOL_RESULTS]"),
    Dialect::new(
        "deepseek_v3",
        &[json(
            Head::between(
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                &["\n```json\n", "\n", "```json", "<｜tool▁sep｜>"],
            ),
            &["```", "<｜tool▁call▁end｜>"],
        )],
    )
    .delimiters(&[
        Delimiter::wrapper("<｜tool▁calls▁begin｜>"),
        Delimiter::call("<｜tool▁call▁begin｜>"),
        // As R1 and the models distilled from it misspell it.
        Delimiter::word("‹｜tool▁calls▁begin｜>"),
        Delimiter::wrapper("<｜tool_calls_begin｜>"),
        Delimiter::wrapper("<｜tool calls begin｜>"),
        Delimiter::wrapper("<｜tool▁calls｜>"),
    ])
    .close(&["<｜tool▁calls▁end｜>"])
    .starts(&["<｜Assistant｜>"])
    .thinking(THINK)
    .noise(&["<｜end▁of▁sentence｜>"])
    .results(
        "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
    ),
    Dialect::new(
        "deepseek_v31",
        // The models mix it with what they wrote before.
        &[json(
            Head::between("<｜tool▁call▁begin｜>", &["<｜tool▁sep｜>", "\n```json\n", "```json", "\n"]),
            &["<｜tool▁call▁end｜>"],
        )],
    )
    .delimiters(&[Delimiter::wrapper("<｜tool▁calls▁begin｜>"), Delimiter::call("<｜tool▁call▁begin｜>")])
    .close(&["<｜tool▁calls▁end｜>"])
    .results("<｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜>"),
    Dialect::new("kimi_k2", &[json(kimi("<|tool_call_begin|>"), KIMI_END), json(kimi(""), KIMI_END)])
        .delimiters(&[
            Delimiter::wrapper("<|tool_calls_section_begin|>"),
            Delimiter::wrapper("<|tool_call_section_begin|>"),
            Delimiter::call("<|tool_call_begin|>"),
            Delimiter::name("<|tool_call_argument_begin|>"),
            Delimiter::name(" <|tool_call_argument_begin|>"),
        ])
        .close(&["<|tool_calls_section_end|>", "<|tool_call_section_end|>"])
        // The second is that of Kimi-VL.
        .thinking(&[("<think>", "</think>"), ("◁think▷", "◁/think▷")]),
    Dialect::new(
        "solar_open",
        &[json(
            Head::AfterId {
                open: "<|tool_call:begin|>",
                before: "<|tool_call:name|>",
                close: "<|tool_call:args|>",
            },
            &["<|tool_call:end|>"],
        )],
    )
    .delimiters(&[Delimiter::wrapper("<|tool_calls|>"), Delimiter::call("<|tool_call:begin|>")])
    .close(&["<|calls|>"])
    .thinking(&[("<|think|>", "<|end|>")])
    .noise(&["<|begin|>assistant", "<|content|>", "<|flush|>"]),
    Dialect::new("functionary_v31", &[json(Head::between("<function=", &[">"]), &["</function>"])])
        .delimiters(&[Delimiter::inner("<function=")]),
    Dialect::new(
        "functionary_v2",
        &[
            json(Head::between("<|recipient|>", &["\n<|content|>"]), &[]),
            json(Head::between("", &["\n<|content|>"]), &[]),
        ],
    )
    .delimiters(&[
        Delimiter::wrapper("<|from|>assistant\n"),
        Delimiter::call("<|recipient|>"),
        Delimiter::name("\n<|content|>{"),
    ])
    .close(&["<|stop|>"])
    // Text for the user.
    .starts(&["<|from|>assistant\n<|recipient|>all\n<|content|>", "<|recipient|>all\n<|content|>"])
    .stops(&["<|stop|>"]),
    Dialect::new("functionary_v32", &[json(Head::between("", &["\n"]), &[])])
        .delimiters(&[Delimiter::line(">>>"), Delimiter::name("\n{")])
        // Text for the user; the prompt ends within the delimiter.
        .starts(&[">>>all\n", "all\n"]),
    Dialect::new(
        "plamo3",
        &[
            json(
                Head::between(
                    "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
                    PLAMO_ARGUMENTS,
                ),
                PLAMO_END,
            ),
            json(Head::between("<|plamo:begin_tool_name:plamo|>", PLAMO_ARGUMENTS), PLAMO_END),
        ],
    )
    .delimiters(&[
        Delimiter::wrapper("<|plamo:begin_tool_requests:plamo|>"),
        Delimiter::call("<|plamo:begin_tool_request:plamo|>"),
    ])
    .close(&["<|plamo:end_tool_requests:plamo|>"])
    .thinking(&[("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>")])
    .noise(&["<|plamo:tag|>", "<|plamo:msg|>"]),
    Dialect::new("qwen_agent", &[json(spaced(&["\n✿ARGS✿: ", "\n✿ARGS✿:"]), &[])])
        .delimiters(&[Delimiter::line("✿FUNCTION✿:")])
        .close(&["✿RESULT✿:", "✿RESULT✿"])
        .open_ended(),
];

const KIMI_END: &[&str] = &["<|tool_call_end|>"];

/// A name with a namespace and an id, after such a delimiter.
const fn kimi(open: &'static str) -> Head {
    Head::Between {
        open,
        close: &["<|tool_call_argument_begin|>", " <|tool_call_argument_begin|>"],
        before: "functions.",
        id: ":",
        written_id: ":0",
    }
}

const PLAMO_ARGUMENTS: &[&str] = &[
    "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
    "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>",
    "<|plamo:end_tool_name:plamo|>",
];
const PLAMO_END: &[&str] = &["<|plamo:end_tool_arguments:plamo|>", "<|plamo:end_tool_request:plamo|>"];
