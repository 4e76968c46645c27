"""What scripted models do with our tools; the same for every client that has a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.scripts import ENDLESS, bash
from tests_clients.support.scripted_api import Call

if TYPE_CHECKING:
    from pathlib import Path

    from tests_clients.support.scripted_api import Script

#: a call's wait that is longer than any test
_LONG_S = 600
#: short enough for a client whose own limit is 10 s
_SHORT_S = 1
_LOOKS = 60


def delegate() -> Script:
    """Start a session, go on with it, end it; say its id and how it ended."""
    shown = yield Call("opencode", prompt="SAY:the first answer")
    assert shown.json["status"] == "completed", shown.text
    assert "the first answer" in shown.json["content"]
    session_id = shown.json["sessionId"]
    shown = yield Call("opencode-reply", sessionId=session_id, prompt="SAY:the second answer")
    assert "the second answer" in shown.json["content"], shown.text
    shown = yield Call("opencode-end", sessionId=session_id)
    return f"{session_id} {shown.json['status']}"


def wait_for_it(prompt: str) -> Script:
    """Start a turn that takes longer than its call; wait for it as the answers say."""
    shown = yield Call("opencode", prompt=prompt, wait_seconds=0)
    assert shown.json["status"] == "running", shown.text
    assert "opencode-status" in shown.json["hint"]
    while shown.json["status"] == "running":
        shown = yield Call(
            "opencode-status", sessionId=shown.json["sessionId"], wait_seconds=_LONG_S
        )
    return f"{shown.json['sessionId']} {shown.json['status']}"


def watch(prompt: str) -> Script:
    """Start a turn and let the call watch it to its end."""
    shown = yield Call("opencode", prompt=prompt, wait_seconds=_LONG_S)
    return f"{shown.json['sessionId']} {shown.json['status']}"


def cut_short() -> Script:
    """Have a call cut by the client's own limit; find its session, and see the turn stopped."""
    shown = yield Call("opencode", prompt=ENDLESS, wait_seconds=_LONG_S)
    assert "ses_" not in shown.text, "the client does tell its model the session, by now"
    shown = yield Call("opencode-status")
    session_id = shown.json["sessions"][0]["sessionId"]
    for _ in range(_LOOKS):
        shown = yield Call("opencode-status", sessionId=session_id, wait_seconds=_SHORT_S)
        if shown.json["status"] == "cancelled":
            break
    return f"{session_id} {shown.json['status']}"


def endless() -> Script:
    """Start a turn that does not end; the test ends it."""
    yield Call("opencode", prompt=ENDLESS, wait_seconds=_LONG_S)
    return "it ended"


def approve(folder: Path) -> Script:
    """Answer what the agent asks, as the caller."""
    shown = yield Call(
        "opencode",
        prompt=f"{bash('touch approved')}\nTHEN\nSAY:touched",
        cwd=str(folder),
        approval_policy="caller",
    )
    assert shown.json["status"] == "waiting_for_approval", shown.text
    session_id = shown.json["sessionId"]
    [pending] = shown.json["pendingApprovals"]
    yield Call("opencode-approve", sessionId=session_id, approvalId=pending["id"], decision="allow")
    shown = yield Call("opencode-status", sessionId=session_id, wait_seconds=_LONG_S)
    return f"{session_id} {shown.json['status']}"


def ask_the_person(folder: Path) -> Script:
    """Start a turn whose asks are the person's to answer; say with which warnings it ended."""
    shown = yield Call(
        "opencode",
        prompt=f"{bash('touch asked')}\nTHEN\nSAY:over",
        cwd=str(folder),
        approval_policy="on-request",
    )
    warnings = [warning["code"] for warning in shown.json.get("warnings", [])]
    return " ".join([shown.json["sessionId"], shown.json["status"], *warnings])


def fail() -> Script:
    """Run into an argument that does not exist, an unknown session, a provider that refuses."""
    yield Call("opencode-end", bogus=1)
    yield Call("opencode-status", sessionId="ses_nobody")
    yield Call("opencode", prompt="STATUS:401")
    return "done"


def say(words: str) -> Script:
    """Call nothing."""
    yield from ()
    return words
