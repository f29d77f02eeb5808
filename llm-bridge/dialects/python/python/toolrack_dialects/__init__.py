"""Reads tool calls and reasoning out of the text that language models write, whatever dialect they write."""

from typing import Any, TypeAlias

from ._native import (
    Aborted,
    Call,
    CallBegin,
    CallDelta,
    Frame,
    Parsed,
    Reasoning,
    Scanner,
    Text,
    __version__,
    dialect_names,
    parse,
)

Tool: TypeAlias = str | dict[str, Any]
"""A tool's name, or a tool as OpenAI, Anthropic and MCP write it: with `name` and the JSON schema of its arguments, which types
values that a dialect writes as plain text."""

Event: TypeAlias = Text | Reasoning | Frame | CallBegin | CallDelta | Call | Aborted
"""What a `Scanner` gives."""

__all__ = [
    "Aborted",
    "Call",
    "CallBegin",
    "CallDelta",
    "Event",
    "Frame",
    "Parsed",
    "Reasoning",
    "Scanner",
    "Text",
    "Tool",
    "__version__",
    "dialect_names",
    "parse",
]
