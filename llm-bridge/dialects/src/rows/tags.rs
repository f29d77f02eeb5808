//! Dialects whose calls are tags, with a tag for each argument.

use super::THINK;
use crate::{
    json::JsonStyle,
    named::{Arguments, Head, NamedStyle, TagStyle},
    table::{Delimiter, Dialect, Form},
};

const fn tags(head: Head, tags: TagStyle, end: &'static [&'static str]) -> NamedStyle {
    NamedStyle { head, arguments: Arguments::Tags(tags), end, list: false }
}

/// The tags in which models write the arguments of calls that are tags.
const MIXED: &[TagStyle] = &[
    TagStyle::new(Head::between("<parameter=", &[">"]), "</parameter>"),
    TagStyle::new(Head::attribute("<parameter ", "name", ">"), "</parameter>").cdata(),
    TagStyle::new(Head::attribute("<param ", "name", ">"), "</param>").cdata(),
    TagStyle::named(),
];
const PARAMETER: TagStyle =
    TagStyle::new(Head::between("<parameter=", &[">"]), "</parameter>").on_lines().or(MIXED);
const NAMED_PARAMETER: TagStyle =
    TagStyle::new(Head::attribute("<parameter ", "name", ">"), "</parameter>").cdata().or(MIXED);
/// As `PARAMETER`, or a JSON object for all of them.
const ANY_PARAMETERS: TagStyle = PARAMETER.object(&("<arguments>", "</arguments>"));
/// `<function=NAME>` with `<parameter=NAME>`.
const FUNCTION: NamedStyle = tags(Head::between("<function=", &[">"]), PARAMETER, &["</function>"]);
/// `<invoke name="NAME">` with `<parameter name="NAME">`.
const INVOKE: NamedStyle = tags(Head::attribute("<invoke ", "name", ">"), NAMED_PARAMETER, &["</invoke>"]);
/// Keys and values in tags of their own.
const PAIRS: TagStyle = TagStyle::new(Head::between("<arg_key>", &["</arg_key>"]), "</arg_value>")
    .value("<arg_value>")
    .verbatim()
    .or(MIXED);
/// The name and the arguments in elements of their own, the arguments as JSON or as elements.
const IN_NAME: Form = Form::Named(tags(Head::between("<name>", &["</name>"]), ANY_PARAMETERS, &[]));
const IN_TOOL_NAME: Form =
    Form::Named(tags(Head::between("<tool_name>", &["</tool_name>"]), ANY_PARAMETERS, &[]));
/// As models write it that have seen several of these.
const QWEN: &[Form] = &[
    Form::Named(FUNCTION),
    Form::Named(INVOKE),
    Form::Named(tags(Head::attribute("<function ", "name", ">"), NAMED_PARAMETER, &["</function>"])),
    Form::Named(tags(Head::between("<function>", &["</function>"]), PARAMETER, &[])),
    IN_NAME,
    IN_TOOL_NAME,
    Form::Named(tags(Head::between("function=", &[">"]), PARAMETER, &["</function>"])),
    // The tool's own name is the tag.
    Form::Named(tags(Head::TAG, TagStyle::named(), &[])),
];
/// A call begins with the delimiter and the name, with nothing around the name.
const PLAIN_NAME: &[&str] = &["", "\n", "<tool_sep>"];

/// The markup of DeepSeek since V3.2, with its prefix for every tag.
macro_rules! markup {
    ($($prefix:literal),+) => {
        Form::Named(tags(
            Head::attribute(concat!("<", $($prefix,)+ "invoke "), "name", ">"),
            TagStyle::new(
                Head::attribute(concat!("<", $($prefix,)+ "parameter "), "name", ">"),
                concat!("</", $($prefix,)+ "parameter>"),
            )
            .verbatim()
            .marking_strings(),
            &[concat!("</", $($prefix,)+ "invoke>")],
        ))
    };
}

/// The forms of a dialect with that prefix, and what stands between it and the names of tags. The bars around the prefix
/// are one token, for which models write others.
macro_rules! dsml_forms {
    ($($space:literal)?) => {
        &[
            markup!("｜DSML｜" $(, $space)?),
            markup!("｜｜DSML｜｜" $(, $space)?),
            markup!("|DSML|" $(, $space)?),
            markup!("||DSML||" $(, $space)?),
            markup!("‖DSML‖" $(, $space)?),
            markup!("｜DSML|" $(, $space)?),
        ]
    };
}

/// Its delimiters, of which these stand after the prefix.
macro_rules! dsml_delimiters {
    ($($kind:ident $tag:literal),+) => {
        &[
            $(Delimiter::$kind(concat!("<｜DSML｜", $tag)),)+
            $(Delimiter::$kind(concat!("<｜｜DSML｜｜", $tag)),)+
            $(Delimiter::$kind(concat!("<|DSML|", $tag)),)+
            $(Delimiter::$kind(concat!("<||DSML||", $tag)),)+
            $(Delimiter::$kind(concat!("<‖DSML‖", $tag)),)+
            $(Delimiter::$kind(concat!("<｜DSML|", $tag)),)+
        ]
    };
}

/// What closes its calls.
macro_rules! dsml_close {
    ($tag:literal) => {
        &[
            concat!("</｜DSML｜", $tag),
            concat!("</｜｜DSML｜｜", $tag),
            concat!("</|DSML|", $tag),
            concat!("</||DSML||", $tag),
            concat!("</‖DSML‖", $tag),
            concat!("</｜DSML|", $tag),
        ]
    };
}

/// A JSON object with all arguments, in an element behind the name.
const fn in_arguments(head: Head) -> Form {
    Form::Named(NamedStyle { head, arguments: Arguments::Json, end: &["</arguments>"], list: false })
}

/// Calls that may stand after the wrapper of any row.
pub(crate) const IN_ELEMENTS: &[Form] = &[IN_NAME, IN_TOOL_NAME];

pub(super) const ROWS: &[Dialect] = &[
    Dialect::new("qwen3_coder", QWEN)
        .delimiters(&[Delimiter::wrapper("<tool_call>"), Delimiter::inner("<function=")])
        .close(&["</tool_call>", "</function_invocation>"])
        .on_lines()
        .thinking(THINK),
    Dialect::new("seed_oss", &[Form::Named(FUNCTION)])
        .delimiters(&[Delimiter::wrapper("<seed:tool_call>")])
        .close(&["</seed:tool_call>"])
        .on_lines()
        .stops(&["<seed:eos>"])
        .thinking(&[("<seed:think>", "</seed:think>")]),
    Dialect::new(
        "mimo",
        &[Form::Named(tags(
            Head::between("<function=", &[">"]),
            TagStyle::new(Head::between("<parameter=", &[">"]), "</parameter>").verbatim(),
            &["</function>"],
        ))],
    )
    .delimiters(&[Delimiter::wrapper("<tool_call>")])
    .close(&["</tool_call>"]),
    Dialect::new(
        "glm47",
        &[
            Form::Named(tags(Head::between("<tool_call>", PLAIN_NAME), PAIRS, &["</tool_call>"])),
            Form::Named(tags(Head::between("", PLAIN_NAME), PAIRS, &["</tool_call>"])),
        ],
    )
    .delimiters(&[
        Delimiter::call("<tool_call>"),
        Delimiter::name("<arg_key>"),
        Delimiter::name("\n<arg_key>"),
        Delimiter::name("</tool_call>"),
    ])
    .thinking(THINK)
    .noise(&["<|role_end|>", "<|begin_of_box|>", "<|end_of_box|>"])
    .starts(&["<|assistant|>"])
    .stops(&["<|observation|>", "<|user|>"])
    .results("<tool_response>{content}</tool_response>"),
    Dialect::new(
        "glm45",
        &[Form::Named(tags(Head::between("<tool_call>", &["\n", ""]), PAIRS, &["</tool_call>"]))],
    )
    .delimiters(&[Delimiter::call("<tool_call>")])
    .on_lines(),
    Dialect::new(
        "poolside_v1",
        &[Form::Named(tags(Head::between("<tool_call>", &["\n", ""]), PAIRS, &["</tool_call>"]))],
    )
    .delimiters(&[Delimiter::call("<tool_call>")])
    .on_lines(),
    Dialect::new(
        "iquest_q1",
        &[Form::Named(tags(
            Head::between("<iquest_tool_call>", PLAIN_NAME),
            PAIRS,
            &["</iquest_tool_call>"],
        ))],
    )
    .delimiters(&[Delimiter::call("<iquest_tool_call>")]),
    Dialect::new(
        "hy_v3",
        &[Form::Named(tags(Head::between("<tool_call>", &["<tool_sep>", ""]), PAIRS, &["</tool_call>"]))],
    )
    .delimiters(&[Delimiter::wrapper("<tool_calls>")])
    .close(&["</tool_calls>"])
    .on_lines()
    .suffixed(),
    Dialect::new(
        "hy_v4",
        &[Form::Named(tags(Head::between("<tool_call>", PLAIN_NAME), PAIRS, &["</tool_call>"]))],
    )
    .delimiters(&[Delimiter::wrapper("<tool_calls>"), Delimiter::call("<tool_call>")])
    .close(&["</tool_calls>"])
    .thinking(THINK)
    .suffixed(),
    Dialect::new(
        "k2_horizon",
        &[
            Form::Named(tags(
                Head::between("", &[""]),
                TagStyle::new(Head::between("<ifm|arg_key>", &["</ifm|arg_key>"]), "</ifm|arg_value>")
                    .value("<ifm|arg_value>")
                    .verbatim()
                    .typed_by(&("<ifm|arg_type>", "</ifm|arg_type>")),
                &["</ifm|tool_call>"],
            )),
            Form::Json(JsonStyle::PLAIN),
        ],
    )
    .delimiters(&[
        Delimiter::wrapper("<ifm|tool_calls><ifm|tool_call>"),
        Delimiter::wrapper("<ifm|tool_calls>"),
        Delimiter::wrapper("<ifm|tool_call>"),
    ])
    .close(&["</ifm|tool_calls>", "</ifm|tool_call></ifm|tool_calls>", "</ifm|tool_call>"])
    .thinking(&[
        ("<ifm|think>", "</ifm|think>"),
        ("<ifm|think_fast>", "</ifm|think_fast>"),
        ("<ifm|think_faster>", "</ifm|think_faster>"),
    ])
    .stops(&["<|ifm|im_end|>"]),
    Dialect::new("minimax_m2", &[Form::Named(INVOKE)])
        .delimiters(&[Delimiter::wrapper("<minimax:tool_call>"), Delimiter::inner("<invoke name=")])
        .close(&["</minimax:tool_call>"])
        .on_lines()
        .stops(&["[e~["]),
    // As models write it that have learned from those of Anthropic.
    Dialect::new(
        "anthropic_xml",
        &[Form::Named(tags(
            Head::attribute("<antml:invoke ", "name", ">"),
            TagStyle::new(Head::attribute("<antml:parameter ", "name", ">"), "</antml:parameter>").cdata(),
            &["</antml:invoke>"],
        ))],
    )
    .delimiters(&[Delimiter::wrapper("<antml:function_calls>"), Delimiter::inner("<antml:invoke ")])
    .close(&["</antml:function_calls>"])
    .on_lines(),
    Dialect::new(
        "minimax_m3",
        &[Form::Named(tags(
            Head::attribute("]<]minimax[>[<invoke ", "name", ">"),
            TagStyle::new(Head::between("]<]minimax[>[<", &[">"]), "]<]minimax[>[</").elements(),
            &["]<]minimax[>[</invoke>"],
        ))],
    )
    .delimiters(&[Delimiter::wrapper("]<]minimax[>[<tool_call>"), Delimiter::inner("]<]minimax[>[<invoke ")])
    .close(&["]<]minimax[>[</tool_call>"])
    .thinking(&[("<mm:think>", "</mm:think>")])
    .on_lines(),
    Dialect::new("dots", &[Form::Named(INVOKE), Form::Json(JsonStyle::PLAIN)])
        .delimiters(&[Delimiter::wrapper("<dots_function_call>")])
        .close(&["</dots_function_call>"]),
    Dialect::new("deepseek_v32", dsml_forms!())
        .delimiters(dsml_delimiters!(wrapper "function_calls>", inner "invoke "))
        .close(dsml_close!("function_calls>"))
        .on_lines(),
    Dialect::new("deepseek_v4", dsml_forms!())
        .delimiters(dsml_delimiters!(
            wrapper "tool_calls>",
            // As the model misspells it.
            wrapper "toolcalls>",
            wrapper "tool_call>",
            wrapper "toolcall>",
            wrapper "tools>",
            wrapper "tool>"
        ))
        .close(dsml_close!("tool_calls>"))
        .on_lines(),
    Dialect::new("deepseek_v41", dsml_forms!(" "))
        .delimiters(dsml_delimiters!(wrapper " calls>", inner " invoke "))
        .close(dsml_close!(" calls>"))
        .on_lines(),
    Dialect::new("gigachat35", &[markup!("｜GCML｜")])
        .delimiters(&[Delimiter::wrapper("<｜GCML｜tool_calls>"), Delimiter::inner("<｜GCML｜invoke ")])
        .close(&["</｜GCML｜tool_calls>"])
        .on_lines(),
    Dialect::new(
        "kimi_k3",
        &[Form::Named(tags(
            Head::attribute("<|open|>call ", "tool", "<|sep|>"),
            TagStyle::new(Head::attribute("<|open|>argument ", "key", "<|sep|>"), "<|close|>argument<|sep|>")
                .verbatim()
                .naming_type()
                .object(&("<|open|>json type=\"object\"<|sep|>", "<|close|>json<|sep|>")),
            &["<|close|>call<|sep|>"],
        ))],
    )
    .delimiters(&[Delimiter::wrapper("<|open|>tools<|sep|>"), Delimiter::inner("<|open|>call ")])
    .close(&["<|close|>tools<|sep|>"])
    .thinking(&[("<|open|>think<|sep|>", "<|close|>think<|sep|>")])
    .noise(&[
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "<|close|>message<|sep|>",
        "<|open|> response <|sep|>",
        "<|close|> response <|sep|>",
    ]),
    Dialect::new(
        "step3",
        &[
            step("<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "),
            step("<｜tool_call_begin｜><steptml:invoke "),
            step("<steptml:invoke "),
        ],
    )
    .delimiters(&[
        Delimiter::wrapper("<｜tool_calls_begin｜>"),
        Delimiter::inner("<｜tool_call_begin｜>"),
        Delimiter::inner("<steptml:invoke "),
    ])
    .close(&["<｜tool_calls_end｜>"])
    .on_lines()
    .stops(&["<|EOT|>"]),
    Dialect::new(
        "minicpm5",
        &[
            Form::Named(tags(
                Head::attribute("<function ", "name", ">"),
                TagStyle::new(Head::attribute("<param ", "name", ">"), "</param>").cdata().or(MIXED),
                &["</function>"],
            )),
            // Without the spaces, as the model writes it at times.
            Form::Named(tags(
                Head::attribute("<function", "name", ">"),
                TagStyle::new(Head::attribute("<param", "name", ">"), "</param>").cdata(),
                &["</function>"],
            )),
        ],
    )
    .delimiters(&[Delimiter::call("<function name="), Delimiter::call("<functionname=")]),
    Dialect::new(
        "mcp_tags",
        &[
            in_arguments(Head::AfterId {
                open: "<server_name>",
                before: "</server_name>\n<tool_name>",
                close: "</tool_name>\n<arguments>",
            }),
            in_arguments(Head::between("<tool_name>", &["</tool_name>\n<arguments>"])),
            Form::Named(tags(
                Head::AfterId {
                    open: "<server_name>",
                    before: "</server_name>\n<tool_name>",
                    close: "</tool_name>",
                },
                ANY_PARAMETERS,
                &[],
            )),
            IN_TOOL_NAME,
        ],
    )
    .delimiters(&[Delimiter::wrapper("<use_mcp_tool>")])
    .close(&["</use_mcp_tool>"])
    .on_lines(),
    Dialect::new(
        "tool_use_tags",
        &[
            in_arguments(Head::between("<name>", &["</name>\n<arguments>"])),
            IN_NAME,
            IN_TOOL_NAME,
            Form::Json(JsonStyle::PLAIN),
        ],
    )
    .delimiters(&[Delimiter::wrapper("<tool_use>")])
    .close(&["</tool_use>"])
    .on_lines()
    .results("<tool_use_result>\n<result>{content}</result>\n</tool_use_result>"),
];

/// Calls that begin so, as Step 3 writes them or forgets a part of it.
const fn step(open: &'static str) -> Form {
    let key = Head::attribute("<steptml:parameter ", "name", ">");
    Form::Named(tags(
        Head::attribute(open, "name", ">"),
        TagStyle::new(key, "</steptml:parameter>"),
        &["</steptml:invoke>", "<｜tool_call_end｜>"],
    ))
}
