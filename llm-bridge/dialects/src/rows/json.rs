//! Dialects whose calls are JSON objects with the tool's name in them.

use super::literals::{LIST, python};
use crate::{
    json::JsonStyle,
    named::Head,
    table::{Delimiter, Dialect, Form},
};

const OBJECT: &[Form] = &[Form::Json(JsonStyle::PLAIN)];
const ARRAY: &[Form] = &[Form::Json(JsonStyle::PLAIN.in_array())];

/// Beside those of Qwen, as the models that learned to think from another one write it.
const THOUGHT: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
];

pub(super) const ROWS: &[Dialect] = &[
    Dialect::new("hermes", OBJECT)
        // The second is where the prompt lists the tools; a model takes it for the place of calls.
        .delimiters(&[Delimiter::wrapper("<tool_call>"), Delimiter::wrapper("<tools>")])
        .close(&["</tool_call>", "</tools>"])
        .on_lines()
        .starts(&["<|im_start|>assistant\n"])
        // The last is that of EXAONE.
        .stops(&["<|im_end|>", "<|endoftext|>", "[|endofturn|]"])
        .noise(&["<|begin_of_solution|>", "<|end_of_solution|>"])
        .thinking(THOUGHT),
    Dialect::new("ernie45", OBJECT)
        .delimiters(&[Delimiter::wrapper("<tool_call>")])
        .close(&["</tool_call>"])
        .on_lines()
        .around(&["<response>", "</response>"])
        .results("<tool_output>\n{content}\n</tool_output>"),
    Dialect::new("bare_json", OBJECT)
        // Left over where a server has eaten the opening delimiter of another dialect as a special token.
        .close(&["</tool_call>"]),
    Dialect::new("lm_studio", OBJECT)
        // The second is that of MiniMax M2, where it falls back.
        .delimiters(&[Delimiter::wrapper("[TOOL_REQUEST]"), Delimiter::wrapper("[TOOL_CALL]")])
        .close(&["[END_TOOL_REQUEST]", "[/TOOL_CALL]"])
        .results("[TOOL_RESULT]{content}[END_TOOL_RESULT]"),
    Dialect::new("xlam", ARRAY),
    Dialect::new(
        "llama3_json",
        &[
            Form::Json(JsonStyle::new(&["name"], &["parameters", "arguments"])),
            // As its built-in tools are called.
            python(Head::between("", &[".call("]), false),
        ],
    )
    // The second as the template of Llama 4 has it.
    .delimiters(&[Delimiter::wrapper("<|python_tag|>"), Delimiter::wrapper("<|python_start|><|python_end|>")])
    .starts(&["<|start_header_id|>assistant<|end_header_id|>\n\n"])
    .noise(&["<|eom_id|>"])
    .stops(&["<|eot_id|>", "<|end_of_text|>"])
    .results("<|start_header_id|>ipython<|end_header_id|>\n\n{content}<|eot_id|>"),
    Dialect::new("phi4_mini_json", ARRAY)
        .delimiters(&[Delimiter::line("functools"), Delimiter::word("functools")]),
    Dialect::new("firefunction", ARRAY).delimiters(&[Delimiter::line("functools")]),
    Dialect::new("nemotron_deci", &[Form::Json(JsonStyle::PLAIN.in_array()), LIST])
        .delimiters(&[Delimiter::wrapper("<TOOLCALL>")])
        .close(&["</TOOLCALL>"])
        .results("<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>"),
    Dialect::new("jamba", ARRAY)
        .delimiters(&[Delimiter::wrapper("<tool_calls>")])
        .close(&["</tool_calls>"])
        .on_lines()
        // As Apriel thinks, whose prompt begins it, or the model itself.
        .thinking(&[("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")])
        .spoken(&[("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")])
        .noise(&["[END FINAL RESPONSE]"])
        .stops(&["[END FINAL RESPONSE]"]),
    Dialect::new("hunyuan_a13b", ARRAY)
        .delimiters(&[Delimiter::wrapper("<tool_calls>")])
        .close(&["</tool_calls>"])
        .around(&["<answer>", "</answer>"]),
    Dialect::new("granite", ARRAY)
        .delimiters(&[Delimiter::wrapper("<|tool_call|>")])
        .close(&["<|end_of_text|>", "<|/tool_call|>"])
        // As Granite 3.2 thinks, which writes either word in both.
        .spoken(&[
            ("Here is my thought process:", "Here is my response:"),
            ("Here is my thought process:", "Here's my response:"),
            ("Here's my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ])
        .open_ended(),
    Dialect::new("granite_20b_fc", OBJECT)
        .delimiters(&[Delimiter::wrapper("<function_call>")])
        .close(&["</function_call>"])
        .open_ended(),
    Dialect::new("glaive", OBJECT)
        .delimiters(&[Delimiter::wrapper("<functioncall>")])
        .close(&["</functioncall>"])
        .open_ended(),
    Dialect::new("internlm2", &[Form::Json(JsonStyle::new(&["name"], &["parameters", "arguments"]))])
        .delimiters(&[
            Delimiter::wrapper("<|action_start|><|plugin|>"),
            Delimiter::wrapper("<|action_start|> <|plugin|>"),
            Delimiter::wrapper("<|action_start|>\n<|plugin|>"),
        ])
        .close(&["<|action_end|>"]),
    Dialect::new("longcat", OBJECT)
        .delimiters(&[Delimiter::wrapper("<longcat_tool_call>")])
        .close(&["</longcat_tool_call>"])
        .thinking(&[("<longcat_think>", "</longcat_think>")]),
    Dialect::new("apertus", &[Form::Json(JsonStyle::KEYED.in_array())])
        .delimiters(&[Delimiter::wrapper("<|tools_prefix|>")])
        .close(&["<|tools_suffix|>"])
        .thinking(&[("<|inner_prefix|>", "<|inner_suffix|>")])
        .stops(&["<|assistant_end|>"]),
    Dialect::new("gigachat3", OBJECT)
        .delimiters(&[
            Delimiter::wrapper("<|function_call|>"),
            Delimiter::wrapper("<|message_sep|>\n\nfunction call<|role_sep|>"),
        ])
        .noise(&["<|message_sep|>"])
        .results("function result<|role_sep|>\n{content}<|message_sep|>"),
    Dialect::new(
        "cohere_command",
        &[Form::Json(JsonStyle::new(&["tool_name", "name"], &["parameters", "arguments"]).in_array())],
    )
    .delimiters(&[Delimiter::wrapper("<|START_ACTION|>")])
    .close(&["<|END_ACTION|>"])
    .on_lines()
    .thinking(&[("<|START_THINKING|>", "<|END_THINKING|>")])
    .stops(&["<|END_OF_TURN_TOKEN|>"])
    .noise(&["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"])
    .results("<|START_TOOL_RESULT|>[{content}]<|END_TOOL_RESULT|>"),
    Dialect::new(
        "command_r_plus",
        &[Form::Json(JsonStyle::new(&["tool_name", "name"], &["parameters", "arguments"]).in_array())],
    )
    .delimiters(&[Delimiter::line("Action:\n```json\n"), Delimiter::line("Action:")])
    .close(&["\n```", "```"]),
    Dialect::new("sarashina", ARRAY).delimiters(&[Delimiter::wrapper("<|tool_calls|>")]),
    Dialect::new("generic", &[Form::Json(JsonStyle::PLAIN.nested("tool_call"))]),
];
