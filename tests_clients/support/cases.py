"""Every tool, called once: what a client sends, and what it must be told.

One table for all clients, for a server with CODEX_TOOLS. A tool that is listed and has no case here
fails the clients' tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tests.real.support.scripts import ENDLESS, bash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json

#: what earlier answers left: sessions by the name that their case gave them, and one approval's id
Known: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Case:
    """One call."""

    tool: str
    #: makes the arguments from what is known by then
    arguments: Callable[[Known], Json]
    #: one of these is the answer's status; none: it has no status, only what Codex's tools said
    statuses: frozenset[str]
    #: the session is known by this name from then on
    name: str | None = None

    def learn(self, answer: Json, known: Known) -> None:
        """Check the structured half of an answer, and remember what later cases need."""
        if self.statuses:
            assert answer["status"] in self.statuses, answer["content"]
        else:
            assert answer.keys() == {"threadId", "content"}
        if self.name is not None:
            known[self.name] = answer["threadId"]
        for pending in answer.get("pendingApprovals", ()):
            known["approval"] = pending["id"]


def cases(project: Path, asking: Path) -> list[Case]:
    """Return the calls in their order. `asking`: a project in which bash needs leave."""
    return [
        Case("opencode", lambda _: _start(project, "SAY:one"), _one_of("completed"), name="a"),
        Case(
            "opencode-reply",
            lambda known: {"sessionId": known["a"], "prompt": "SAY:two"},
            _one_of("completed"),
        ),
        Case(
            "opencode",
            lambda _: _start(project, ENDLESS) | {"wait-seconds": 0},
            _one_of("running"),
            name="b",
        ),
        Case("opencode-status", lambda known: {"threadId": known["b"]}, _one_of("running")),
        Case(
            "opencode-cancel",
            lambda known: {"sessionId": known["b"], "wait-ms": 20_000},
            _one_of("cancelled", "stopping"),
        ),
        *_asks(asking),
        Case("opencode-output", lambda known: {"sessionId": known["a"], "turn": 1}, _one_of("ok")),
        Case("opencode-info", lambda _: {}, _one_of("ok")),
        Case("codex", lambda _: _start(project, "SAY:three"), _one_of(), name="d"),
        Case(
            "codex-reply",
            lambda known: {"threadId": known["d"], "prompt": "SAY:four"},
            _one_of(),
        ),
        *(Case("opencode-end", _end(name), _one_of("ended")) for name in "abcd"),
    ]


def _asks(asking: Path) -> list[Case]:
    return [
        Case(
            "opencode",
            lambda _: _start(asking, bash("true")) | {"approval-policy": "caller"},
            _one_of("waiting_for_approval"),
            name="c",
        ),
        Case(
            "opencode-approve",
            lambda known: {
                "sessionId": known["c"],
                "approvalId": known["approval"],
                "decision": "allow",
            },
            _one_of("running", "completed"),
        ),
    ]


def _one_of(*statuses: str) -> frozenset[str]:
    return frozenset(statuses)


def _start(folder: Path, prompt: str) -> Json:
    return {"prompt": prompt, "cwd": str(folder)}


def _end(name: str) -> Callable[[Known], Json]:
    return lambda known: {"conversationId": known[name]}
