"""What an end came to: confirmed, or accepted and not confirmed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from opencode_mcp.errors import SessionNotFoundError
from opencode_mcp.records import EndAction

if TYPE_CHECKING:
    from opencode_mcp.errors import OpencodeMcpError
    from opencode_mcp.records import Tombstone

#: the key that a tombstone's answer has where there was no answer
_GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Ended:
    """A confirmed end, and what it took. `action` is what was confirmed."""

    session_id: str
    action: EndAction
    aborted_running_turn: bool
    rejected_permissions: int
    rejected_questions: int
    ended_subsessions: int
    #: it was deleted elsewhere although an archive was asked for
    was_gone: bool = False


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """An accepted end that is not confirmed: the session stays tracked as ending."""

    session_id: str
    action: EndAction
    reason: str
    #: the fault that OpenCode or the instance gave; None: the time ran out
    cause: OpencodeMcpError | None


def answer_json(ended: Ended) -> str:
    """Return the answer as a tombstone keeps it."""
    return json.dumps(asdict(ended))


def given_up_json() -> str:
    """Return what the tombstone of a session keeps that was forgotten without proof."""
    return json.dumps({_GIVEN_UP: True})


def is_given_up(tombstone: Tombstone) -> bool:
    """Whether an operator had the session forgotten: no end of it was ever confirmed."""
    return bool(json.loads(tombstone.answer_json).get(_GIVEN_UP))


def how_it_ended(tombstone: Tombstone) -> str:
    """Return when and how a session ended, in words that follow its id."""
    at = f"{tombstone.ended_at:%Y-%m-%dT%H:%M:%SZ}"
    if is_given_up(tombstone):
        return f"was forgotten by an operator at {at}, without proof that it ended"
    return f"ended at {at} ({tombstone.action.value})"


def answer_of(tombstone: Tombstone) -> Ended:
    """Return the answer that an end gave, for whoever joins it late.

    Raises SessionNotFoundError if there is none: the session was forgotten without proof.
    """
    if is_given_up(tombstone):
        msg = f"session {tombstone.session_id} {how_it_ended(tombstone)}"
        raise SessionNotFoundError(msg, session_id=tombstone.session_id)
    kept = json.loads(tombstone.answer_json)
    return Ended(**{**kept, "action": EndAction(kept["action"])})
