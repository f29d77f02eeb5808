from collections.abc import Iterable
from typing import Any, Final, final

from . import Event, Tool

__all__ = [
    "Aborted",
    "Call",
    "CallBegin",
    "CallDelta",
    "Frame",
    "Parsed",
    "Reasoning",
    "Scanner",
    "Text",
    "__version__",
    "dialect_names",
    "parse",
]
__version__: str

@final
class Call:
    """A tool call."""

    __match_args__: Final = ("name", "arguments")

    @property
    def index(self) -> int:
        """Its place among the calls of this text, from 0."""
    @property
    def name(self) -> str:
        """The tool's name as the model wrote it."""
    @property
    def arguments(self) -> str:
        """A JSON object as text: to the byte what the model wrote where that is valid JSON."""
    @property
    def source(self) -> str:
        """The raw text of the call, with its delimiters."""
    @property
    def dialect(self) -> str:
        """The dialect's name."""
    @property
    def repaired(self) -> bool:
        """Quotes, commas, brackets or tags were repaired."""
    @property
    def closed(self) -> bool:
        """Its end was written. Without it, at the end of a text that was cut off, it may be half of a call."""

    def __new__(
        cls, index: int, name: str, arguments: str, source: str, dialect: str, repaired: bool, closed: bool
    ) -> Call: ...
    def __getnewargs__(self) -> tuple[int, str, str, str, str, bool, bool]: ...
    def __hash__(self) -> int: ...
    def parsed_arguments(self) -> dict[str, Any]:
        """The arguments as Python values."""

@final
class Text:
    """Text for the user."""

    __match_args__: Final = ("text",)
    @property
    def text(self) -> str: ...

@final
class Reasoning:
    """The model's thinking."""

    __match_args__: Final = ("text",)
    @property
    def text(self) -> str: ...

@final
class Frame:
    """Delimiters around thinking and messages, for nobody."""

    __match_args__: Final = ("text",)
    @property
    def text(self) -> str: ...

@final
class CallBegin:
    """A call has begun; only with `deltas`. Exactly one `Call` or `Aborted` of its index follows."""

    __match_args__: Final = ("index", "name")
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def dialect(self) -> str: ...

@final
class CallDelta:
    """The next piece of the arguments; only with `deltas`. Together they are the arguments of the call."""

    __match_args__: Final = ("index", "arguments")
    @property
    def index(self) -> int: ...
    @property
    def arguments(self) -> str: ...

@final
class Aborted:
    """What had begun as a call is none. Its text is still to come."""

    __match_args__: Final = ("index", "reason")
    @property
    def index(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def reason(self) -> str: ...

@final
class Parsed:
    """A whole text, parsed."""

    def __new__(cls, content: str, reasoning: str, calls: tuple[Call, ...], dialect: str | None) -> Parsed: ...
    def __getnewargs__(self) -> tuple[str, str, tuple[Call, ...], str | None]: ...
    @property
    def content(self) -> str:
        """The text for the user."""
    @property
    def reasoning(self) -> str:
        """The thinking."""
    @property
    def calls(self) -> tuple[Call, ...]: ...
    @property
    def dialect(self) -> str | None:
        """The dialect of the first call."""

def parse(
    text: str, tools: Iterable[Tool] | None = None, *, thinking: bool = False, dialect: str | None = None
) -> Parsed:
    """Parses a whole text.

    Without `tools` any name counts as that of a tool; with an empty list nothing is a call. `thinking` says that the prompt has
    already opened the thinking, and `dialect` that calls are read in this dialect only.

    Raises `TypeError` or `ValueError` for a tool without a name and for a dialect that is none.
    """

def dialect_names() -> list[str]:
    """The names of the dialects."""

@final
class Scanner:
    """Parses a text that comes in pieces of any size. One for each text; not to be shared between threads."""

    def __new__(
        cls,
        tools: Iterable[Tool] | None = None,
        *,
        thinking: bool = False,
        dialect: str | None = None,
        deltas: bool = False,
        max_call_bytes: int = 8388608,
    ) -> Scanner:
        """As `parse`. `deltas` asks for `CallBegin` and `CallDelta`; a call longer than `max_call_bytes` comes back as text."""

    def push(self, text: str) -> list[Event]:
        """Takes the next piece. Raises `RuntimeError` after `finish`."""

    def finish(self) -> list[Event]:
        """The text is at its end: what was held back."""
