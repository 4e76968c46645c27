"""What the schema of a tool cannot say of its arguments: which go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.errors import InvalidArgumentError

if TYPE_CHECKING:
    from opencode_mcp.callers.argument_kinds import Arguments
    from opencode_mcp.callers.arguments_reading import StatusArguments


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
        "offset only goes with a list: leave out the ids": arguments.offset is not None
        and (ids or one),
        "limit only goes with a list: leave out the ids": arguments.limit is not None
        and (ids or one),
    }
    for fault, is_there in faults.items():
        if is_there:
            raise InvalidArgumentError(fault)
