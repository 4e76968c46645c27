"""What the schema of a tool cannot say of its arguments: which go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.callers.argument_kinds import Arguments
    from opencode_mcp.callers.arguments import ReplyArguments, StartArguments
    from opencode_mcp.callers.arguments_reading import OutputArguments, StatusArguments


ID_NAMES = ("sessionId", "threadId", "conversationId")


def one_reference(arguments: Arguments, names: tuple[str, ...] = ID_NAMES) -> str:
    """Return the one id that was given. Raises InvalidArgumentError for none or several.

    `names`: those under which the tool takes it.
    """
    given = arguments.references
    if len(given) == 1:
        return next(iter(given.values()))
    what = f"{' and '.join(given)} were given" if given else "none was given"
    msg = f"give exactly one of {', '.join(names)} ({what})"
    raise InvalidArgumentError(msg)


def check_together(arguments: StatusArguments) -> None:
    """Raise InvalidArgumentError for arguments of `opencode-status` that do not go together."""
    ids, one = arguments.ids, arguments.references
    faults = {
        "ids go without another id": ids and one,
        "ids name a session twice": ids and len(set(ids)) < len(ids),
        "wait-for only goes with ids": arguments.wait_for and not ids,
        "wait-seconds only goes with an id or ids": arguments.wait_seconds and not (ids or one),
        "max-output-chars only goes with an id or ids": arguments.max_output_chars is not None
        and not (ids or one),
        "offset only goes with a list: leave out the ids": arguments.offset is not None
        and (ids or one),
        "limit only goes with a list: leave out the ids": arguments.limit is not None
        and (ids or one),
    }
    _refuse(faults)


def check_output(arguments: OutputArguments) -> None:
    """Raise InvalidArgumentError for arguments of `opencode-output` that do not go together."""
    _refuse(
        {
            "diff-view only goes with section diff": arguments.diff_view
            and arguments.section != "diff",
            "file-index only goes with diff-view patch": arguments.file_index is not None
            and arguments.diff_view != "patch",
        }
    )


def _refuse(faults: Mapping[str, object]) -> None:
    for fault, is_there in faults.items():
        if is_there:
            raise InvalidArgumentError(fault)


def schema_of(arguments: StartArguments | ReplyArguments) -> str | None:
    """Return the schema as the engine takes it. Raises InvalidOutputSchemaError."""
    from opencode_mcp.engine.schema_rules import schema_text  # noqa: PLC0415 - late, as the engine is

    schema = arguments.output_schema
    return None if schema is None else schema_text(schema)
