"""`sessions end`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from opencode_mcp.cli.screen import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    note,
    print_json,
    progress,
)
from opencode_mcp.cli.sessions_look import unknown
from opencode_mcp.cli.visiting import OPERATOR
from opencode_mcp.counting import counted, happened
from opencode_mcp.engine.ends import Ended, Unconfirmed, how_it_ended
from opencode_mcp.errors import (
    EndConflictError,
    OpencodeMcpError,
    SessionNotFoundError,
    ShuttingDownError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.records import EndAction

Json: TypeAlias = dict[str, Any]

_NEWS_S = 0.1
_GOES_ON = (
    "it stays recorded: any server on this database goes on with it, and so does this command when"
    " you run it again"
)


async def end_all(
    runtime: Runtime, *, references: Sequence[str], action: EndAction | None, as_json: bool
) -> int:
    """End sessions, all at once, and tell how each went; return the exit code."""
    engine = await runtime.engine()
    unique = list(dict.fromkeys(references))
    with progress(f"ending {counted(len(unique), 'session')} …") as news:
        telling = asyncio.create_task(_tell(runtime, unique, news))
        try:
            ends = await asyncio.gather(
                *(_end(runtime, engine, reference, action) for reference in unique)
            )
        finally:
            telling.cancel()
            await asyncio.wait({telling})
    if as_json:
        print_json({"ends": ends})
    else:
        for end in ends:
            (click.echo if end["status"] == "ended" else note)(_sentence(end))
    statuses = {end["status"] for end in ends}
    if statuses & {"ending", "error"}:
        return EXIT_FAILED
    return EXIT_NOT_FOUND if "not_found" in statuses else 0


async def _end(runtime: Runtime, engine: Engine, reference: str, action: EndAction | None) -> Json:
    try:
        end = await engine.end(reference, OPERATOR, action)
    except SessionNotFoundError:
        tombstone = await runtime.store.tombstone(reference)
        why = (
            f"session {reference[:100]} {how_it_ended(tombstone)}"
            if tombstone
            else unknown(runtime, reference)
        )
        return {"sessionId": reference, "status": "not_found", "message": why}
    except (EndConflictError, ShuttingDownError) as error:
        return _fault(reference, error)
    if isinstance(end, Ended):
        return _confirmed(end)
    if runtime.closing.is_begun:
        end = replace(end, reason="the waiting was stopped, but the end is recorded")
    return _unconfirmed(end)


def _fault(reference: str, error: OpencodeMcpError) -> Json:
    return {
        "sessionId": reference,
        "status": "error",
        "error": {"name": error.name, "message": str(error)},
    }


def _confirmed(end: Ended) -> Json:
    return {
        "sessionId": end.session_id,
        "status": "ended",
        "action": end.action.value,
        "abortedRunningTurn": end.aborted_running_turn,
        "rejectedPermissions": end.rejected_permissions,
        "rejectedQuestions": end.rejected_questions,
        "endedSubsessions": end.ended_subsessions,
    }


def _unconfirmed(end: Unconfirmed) -> Json:
    name = end.cause.name if end.cause else "CLEANUP_UNCONFIRMED"
    return {
        "sessionId": end.session_id,
        "status": "ending",
        "action": end.action.value,
        "error": {"name": name, "message": end.reason},
    }


def _sentence(end: Json) -> str:
    session_id = end["sessionId"]
    if end["status"] == "not_found":
        return f"opencode-mcp: {end['message']}"
    if end["status"] == "error":
        return f"opencode-mcp: {session_id}: {end['error']['message']}"
    if end["status"] == "ending":
        reason = end["error"]["message"].rstrip(".")
        return f"opencode-mcp: {session_id} is not confirmed to have ended: {reason}; {_GOES_ON}"
    did = "deleted" if end["action"] == "delete" else "archived"
    took = [
        "its running turn was stopped" if end["abortedRunningTurn"] else "",
        happened(end["rejectedPermissions"], "permission", "rejected"),
        happened(end["rejectedQuestions"], "question", "rejected"),
        happened(end["endedSubsessions"], "sub-session", "ended"),
    ]
    return "; ".join([f"{session_id} ended: {did} and confirmed", *filter(None, took)])


async def _tell(runtime: Runtime, references: Sequence[str], news: Callable[[str], None]) -> None:
    """Tell what the row of an end says while it is worked on."""
    told = ""
    while True:
        await asyncio.sleep(_NEWS_S)
        for reference in references:
            session = await runtime.store.resolve(reference)
            ending = session.ending if session else None
            if session is None or ending is None or not ending.last_error:
                continue
            text = f"{session.id}: attempt {ending.attempt} failed: {ending.last_error}"
            if text != told:
                told = text
                news(text)
