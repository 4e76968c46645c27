"""A state machine that drives our server and the twin at random, and checks what we promise.

The promises: every call is answered; no session that was told to a caller is lost; nothing is
called ended that is not; nothing is done to a session that is not ours; and in the end everything
that was to end has ended.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, subagent
from tests.support.bridges import Bridges
from tests.support.polling import eventually
from tests.twin import Body, DropStreams, Hang, Reset, Restart, Status, Truncate, Twin
from tests.worker import ASK

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.support.bridge import Answer, Bridge
    from tests.twin.faults import Fault

T = TypeVar("T")

PROMPTS = (
    "SAY:ready",
    "HANG",
    "SLOW:40,20",
    bash("echo hi"),
    subagent(bash("echo hi")),
    "STATUS:503",
)
FAULTS: tuple[Fault, ...] = (
    Reset(),
    Reset(after=True),
    Hang(),
    Hang(after=True),
    Status(500),
    Status(503, after=True),
    Status(429, retry_after="0"),
    Body(b"{"),
    Truncate(),
    DropStreams(),
    Restart(),
)
#: what a tool may answer that could not do what it was asked to
ERRORS = {
    "APPROVAL_NOT_FOUND",
    "CLEANUP_UNCONFIRMED",
    "EMPTY_RESPONSE",
    "END_CONFLICT",
    "OPENCODE_OVERLOADED",
    "OPENCODE_UNAVAILABLE",
    "OPENCODE_UNSUPPORTED",  # its health answer was garbled
    "SESSION_BUSY",
    "SESSION_NOT_FOUND",
    "SUBMISSION_UNCONFIRMED",
    "TURN_INCOMPLETE",
    "UPSTREAM_ERROR",
}
_servers = st.integers(0, 1)
_which = st.integers(0, 1_000)


class Ends(RuleBasedStateMachine):
    """Two servers of ours on one database, one OpenCode, and a client that is not ours."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        #: sessions that a caller was told of, and what it was told of their end, if anything
        self.told: dict[str, str | None] = {}
        self.foreign: set[str] = set()
        self.run(self._open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in the loop of this example, with an end to it."""
        return self.runner.run(asyncio.wait_for(work, 90))

    async def _open(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        self.project = write_project(folder / "asking", ASK)
        self.twin = await self.stack.enter_async_context(Twin(folder, model_speed=20))
        self.twin.pace.retries_s = (0.5,)
        self.bridges = Bridges(self.stack, folder, self.twin, folder)
        self.servers = [await self._server() for _ in range(2)]

    async def _server(self) -> Bridge:
        return await self.bridges.attached(
            REQUEST_TIMEOUT_SECONDS="1", CLEANUP_TIMEOUT_SECONDS="1", TURN_TIMEOUT_SECONDS="30"
        )

    def pick(self, which: int) -> str:
        """Return one of the sessions that a caller knows."""
        return list(self.told)[which % len(self.told)]

    def call(self, server: int, tool: str, **arguments: object) -> Answer:
        """Call a tool: it answers, and with nothing that a caller would not expect."""
        answer = self.run(self.servers[server].call(tool, **arguments))
        assert answer.error is None or answer.error in ERRORS, answer.text
        return answer

    # --- what callers do ---

    @rule(server=_servers, prompt=st.sampled_from(PROMPTS), wait_s=st.sampled_from([0, 0, 1]))
    def start(self, server: int, prompt: str, wait_s: int) -> None:
        answer = self.call(
            server,
            "opencode",
            prompt=prompt,
            cwd=str(self.project),
            wait_seconds=wait_s,
            approval_policy="caller",
        )
        if "sessionId" in answer.structured:
            self.told[answer.session_id] = None

    @precondition(lambda self: self.told)
    @rule(server=_servers, which=_which, prompt=st.sampled_from(PROMPTS))
    def reply(self, server: int, which: int, prompt: str) -> None:
        self.call(
            server, "opencode-reply", sessionId=self.pick(which), prompt=prompt, wait_seconds=0
        )

    @precondition(lambda self: self.told)
    @rule(server=_servers, which=_which, wait_ms=st.sampled_from([0, 500]))
    def cancel(self, server: int, which: int, wait_ms: int) -> None:
        session_id = self.pick(which)
        answer = self.call(server, "opencode-cancel", sessionId=session_id, wait_ms=wait_ms)
        if answer.structured.get("cancelled") is True and session_id in self.twin.world.sessions:
            assert session_id not in self.twin.runs.running, answer.text

    @precondition(lambda self: self.told)
    @rule(server=_servers, which=_which, decision=st.sampled_from(["allow", "reject"]))
    def approve(self, server: int, which: int, decision: str) -> None:
        session_id = self.pick(which)
        status = self.call(server, "opencode-status", sessionId=session_id)
        for ask in status.structured.get("pendingApprovals", []):
            self.call(
                server,
                "opencode-approve",
                sessionId=session_id,
                approvalId=ask["id"],
                decision=decision,
            )

    @precondition(lambda self: self.told)
    @rule(
        servers=st.lists(_servers, min_size=1, max_size=2),
        which=_which,
        action=st.sampled_from(["delete", "archive", None]),
    )
    def end(self, servers: list[int], which: int, action: str | None) -> None:
        session_id = self.pick(which)
        arguments: dict[str, object] = {"sessionId": session_id}
        if action is not None:
            arguments["action"] = action

        async def at_once() -> list[Answer]:
            calls = [self.servers[one].call("opencode-end", **arguments) for one in servers]
            return await asyncio.gather(*calls)

        for answer in self.run(at_once()):
            assert answer.error is None or answer.error in ERRORS, answer.text
            if answer.status == "ended":
                self._check_gone(session_id, str(answer.structured["action"]))
            if answer.status in {"ended", "ending"} and self.told[session_id] != "ended":
                self.told[session_id] = answer.status

    # --- what happens to us, and to OpenCode ---

    @rule(server=_servers)
    def restart_ours(self, server: int) -> None:
        async def again() -> Bridge:
            await self.servers[server].close()
            return await self._server()

        self.servers[server] = self.run(again())

    @rule()
    def restart_opencode(self) -> None:
        self.run(self.twin.restart())

    @rule(fault=st.sampled_from(FAULTS), nth=st.integers(1, 12), times=st.integers(1, 3))
    def fail(self, fault: Fault, nth: int, times: int) -> None:
        self.twin.fail(fault, nth=nth, times=times)

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def somebody_else_begins(self) -> None:
        session = self.twin.world.create(str(self.project), {})
        self.foreign.add(session["id"])
        body = {"parts": [{"type": "text", "text": "HANG"}]}
        self.run(self._submit(session, body))

    async def _submit(self, session: dict[str, Any], body: dict[str, Any]) -> None:
        self.twin.runs.submit(session, body, f"msg_{session['id']}")

    @precondition(lambda self: self.told)
    @rule(which=_which)
    def somebody_else_deletes(self, which: int) -> None:
        session_id = self.pick(which)
        if session_id in self.twin.world.sessions:
            self.run(self.twin.runs.delete(session_id))

    # --- what we promise ---

    @invariant()
    def no_session_is_lost(self) -> None:
        with closing(sqlite3.connect(self.bridges.database)) as file:
            tracked = {row[0] for row in file.execute("SELECT id FROM sessions")}
            ended = {row[0] for row in file.execute("SELECT session_id FROM tombstones")}
        assert set(self.told) <= tracked | ended
        assert not tracked & ended
        assert not ended & {one for one, how in self.told.items() if how is None and one in tracked}

    @invariant()
    def nothing_is_done_to_what_is_not_ours(self) -> None:
        for line in self.twin.lines():
            assert line.startswith("GET") or not any(one in line for one in self.foreign), line
        assert self.foreign <= set(self.twin.world.sessions)

    def _check_gone(self, session_id: str, action: str) -> None:
        session = self.twin.world.sessions.get(session_id)
        assert session_id not in self.twin.runs.running
        assert session is None or (action == "archive" and "archived" in session["time"])

    def teardown(self) -> None:
        """Take the faults away: what was to end has ended then, and the rest can be ended."""
        try:
            self.run(self._bring_to_an_end())
        finally:
            self.run(self.stack.aclose())
            self.runner.close()

    async def _bring_to_an_end(self) -> None:
        self.twin.heal()
        await self.twin.listen()
        # else nothing would prove whose data a 404 comes from (contract §2.3, step 7)
        witness = await self.servers[0].start("SAY:witness", self.project)

        def rows(sql: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(self.bridges.database)) as file:
                return file.execute(sql).fetchall()

        async def nothing_ends() -> bool:
            return not rows("SELECT 1 FROM sessions WHERE phase = 'ending'")

        await eventually(nothing_ends, what="what was to end has ended")
        tombstones = {row[0] for row in rows("SELECT session_id FROM tombstones")}
        assert {one for one, how in self.told.items() if how is not None} <= tombstones
        rest = [row[0] for row in rows("SELECT id FROM sessions") if row[0] != witness.session_id]
        for session_id in [*rest, witness.session_id]:
            await self.servers[0].end(session_id)
            await eventually(nothing_ends, what="the rest has ended")

        async def only_others() -> bool:
            left = {
                i for i, one in self.twin.world.sessions.items() if "archived" not in one["time"]
            }
            quiet = set(self.twin.runs.running) <= self.foreign
            return left == self.foreign and quiet and not rows("SELECT 1 FROM starts")

        await eventually(only_others, what="only the sessions of others are left")
