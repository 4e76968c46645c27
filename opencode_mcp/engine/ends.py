"""What an end came to: confirmed, or accepted and not confirmed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from opencode_mcp.records import EndAction

if TYPE_CHECKING:
    from opencode_mcp.errors import OpencodeMcpError
    from opencode_mcp.records import Tombstone


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


def answer_of(tombstone: Tombstone) -> Ended:
    """Return the answer that an end gave, for whoever joins it late."""
    kept = json.loads(tombstone.answer_json)
    return Ended(**{**kept, "action": EndAction(kept["action"])})
