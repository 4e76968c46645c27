"""How a caller wants to see a turn: `detail`, `max-output-chars`, and what there is room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from opencode_mcp.callers.sizing import ERROR_CHARS, MAX_RESULT_CHARS

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

Detail: TypeAlias = Literal["standard", "compact"]

#: what `compact` leaves out: what a caller that only wants to know can do without. Warnings are
#: in the text, too; the lists keep their counts.
_NOT_COMPACT = (
    "directory",
    "agent",
    "model",
    "output",
    "finish",
    "warnings",
    "filesChanged",
    "toolCalls",
    "tokens",
    "cost",
    "elapsedMs",
    "responseLoop",
)


class ShownArguments(Protocol):
    """Arguments of a tool whose caller may choose."""

    @property
    def detail(self) -> Detail | None:
        """`detail`, if it was given."""

    @property
    def max_output_chars(self) -> int | None:
        """`max-output-chars`, if it was given."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a turn its result shows. Sizes are in serialized characters (`sizing`)."""

    #: of the answer, as our server writes it: what the caller or the operator asks for
    max_chars: int
    detail: Detail = "standard"
    #: of the answer, in its longest spelling: what there is room for
    answer_chars: int = MAX_RESULT_CHARS
    #: of `pendingApprovals`; what the text says of them takes no more
    asks_chars: int = 12_000
    #: of `warnings`, and once more of the text
    warnings_chars: int = 4_000
    #: of the error's message, and once more of the text
    error_chars: int = ERROR_CHARS

    def without_details(self, result: Result) -> Result:
        """Return the result as its caller wants it: with `compact`, without the details.

        What a caller did not want is not among `omittedFields`: those were lost against its wish.
        """
        if self.detail == "standard":
            return result
        kept = {name: value for name, value in result.items() if name not in _NOT_COMPACT}
        return cast("Result", cast("dict[str, Any]", kept))
