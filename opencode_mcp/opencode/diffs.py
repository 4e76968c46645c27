"""What OpenCode says that a turn changed, file by file: on the turn's own user message.

Only in git folders. It is written about 0.2 s after the turn is idle, until then it may be empty or
of an earlier step; a rename is a deletion and an addition, a binary file has no patch (all tried on
1.18.33). `GET /session/{id}/diff?messageID=` says the same.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from opencode_mcp.opencode.fields import FromOpencode


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return round(value) if isinstance(value, int | float) else 0


class ChangedFile(FromOpencode):
    """One file: its path below the worktree's root, and what git says of it.

    `status` is `added`, `modified` or `deleted`; another version may have other words.
    """

    file: Annotated[str, BeforeValidator(_text)]
    patch: Annotated[str, BeforeValidator(_text)] = ""
    additions: Annotated[int, BeforeValidator(_number)] = 0
    deletions: Annotated[int, BeforeValidator(_number)] = 0
    status: Annotated[str, BeforeValidator(_text)] = ""


def _files(summary: object) -> object:
    """Take the files of a summary; None where there is none (an assistant's is `true`)."""
    if not isinstance(summary, dict):
        return None
    diffs = summary.get("diffs")
    known = diffs if isinstance(diffs, list) else []
    return tuple(diff for diff in known if isinstance(diff, dict) and diff.get("file"))


#: a user message's `summary`; None: it has none yet
ChangedFiles = Annotated[tuple[ChangedFile, ...] | None, BeforeValidator(_files)]
