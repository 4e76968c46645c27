"""A process of ours that a test kills at a numbered step of its work.

The program itself, with the tracking database and the HTTP client it has in a real run; only the
MCP client is missing. A step is what may lie between two crashes: before a request, after it was
answered and before its answer is used, after a commit. Processes are forked from a server that has
the program imported, so that one costs a tenth of a second.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fastmcp import Client

from opencode_mcp.app import runtime as app_runtime
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.engine import ends, finisher, leases, observing
from opencode_mcp.engine.requests import StartRequest
from opencode_mcp.errors import OpencodeMcpError
from opencode_mcp.opencode import processes
from opencode_mcp.opencode.http import Http
from opencode_mcp.records import ApprovalPolicy, EndAction, Principal, Sandbox
from opencode_mcp.settings import load_settings
from opencode_mcp.store.connection import Database, Transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from multiprocessing.connection import Connection
    from pathlib import Path

    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.opencode.calls import Answer, Call

Job: TypeAlias = Literal["start", "end", "carry on", "call"]

_FOREVER_S = 1e6
_READY = "ready"
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Errand:
    """What the process is to do. `kill_at`: at which step it kills itself; 0: at none."""

    env: Mapping[str, str]
    folder: Path
    job: Job
    #: for `call`: what `opencode` is called with, or `opencode-reply` if that names a session
    arguments: Mapping[str, object] = field(default_factory=dict)
    #: of the sessions that it starts
    prompts: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    action: EndAction = EndAction.DELETE
    kill_at: int = 0
    #: or: at the first step whose name begins so; empty: at none
    kill_at_step: str = ""
    #: of the turns that it starts
    timeout_s: float = 600
    #: it begins once this file is there: several begin at once
    starting_shot: Path | None = None
    #: how long a lease holds; None: as long as ever
    lease_s: float | None = None


@dataclass(frozen=True)
class Report:
    """What the process told before it was gone. `steps`: their names, in order."""

    steps: tuple[str, ...]
    answers: tuple[str, ...]
    exit_code: int | None

    @property
    def was_killed(self) -> bool:
        """Whether it killed itself, or was killed, before its work was done."""
        return self.exit_code == -signal.SIGKILL


class Victim:
    """The process as its test sees it."""

    def __init__(self, errand: Errand) -> None:
        self._here, there = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_main, args=(errand, there))
        self._process.start()
        there.close()
        self._steps: list[str] = []
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """Its process id."""
        return int(self._process.pid or 0)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    async def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        assert (await self.finished()).was_killed

    async def answer(self) -> str:
        """Wait for the next thing that it tells: a session's id, an end's answer."""
        return await asyncio.to_thread(self._answer)

    async def ready(self) -> None:
        """Wait until it is up and waits for the starting shot."""
        assert await self.answer() == _READY

    async def stepped(self, count: int) -> None:
        """Wait until it has taken so many steps more."""
        await asyncio.to_thread(self._stepped, count)

    async def finished(self) -> Report:
        """Wait until it is gone, and return what it told."""
        return await asyncio.to_thread(self._finished)

    def _answer(self) -> str:
        with self._lock:
            while True:
                kind, text = self._here.recv()
                if kind == "answer":
                    return str(text)
                self._steps.append(text)

    def _stepped(self, count: int) -> None:
        with self._lock:
            for _ in range(count):
                kind, text = self._here.recv()
                assert kind == "step"
                self._steps.append(text)

    def _finished(self) -> Report:
        answers: list[str] = []
        with self._lock, suppress(EOFError):
            while self._here.poll(_PATIENCE_S):
                kind, text = self._here.recv()
                (self._steps if kind == "step" else answers).append(text)
        self._process.join(_PATIENCE_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        code = self._process.exitcode
        self._process.close()
        self._here.close()
        return Report(tuple(self._steps), tuple(answers), code)


async def run(errand: Errand) -> Report:
    """Let a process do the errand, and return what it told."""
    return await Victim(errand).finished()


class _Steps:
    """Counts the steps of the program in this process, and kills it at one of them."""

    def __init__(self, errand: Errand, report: Connection) -> None:
        self.counts = False
        self._errand = errand
        self._report = report
        self._count = 0

    def step(self, name: str) -> None:
        if not self.counts:
            return
        self._count += 1
        self._report.send(("step", name))
        wanted = self._errand.kill_at_step
        if self._count == self._errand.kill_at or (wanted and name.startswith(wanted)):
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Watch every request and every commit of the program."""
        request, transact = Http._try, Database._transact  # noqa: SLF001 - its seams

        step = self.step

        async def watched_request(self: Http, call: Call, deadline: float) -> Answer:
            step(f"before {call.method} {call.path}")
            try:
                return await request(self, call, deadline)
            finally:
                step(f"after {call.method} {call.path}")

        async def watched_commit(
            self: Database, work: Callable[[Transaction], Awaitable[object]]
        ) -> object:
            result = await transact(self, work)
            step("after a commit")
            return result

        Http._try = watched_request  # type: ignore[method-assign] # noqa: SLF001
        Database._transact = watched_commit  # type: ignore[assignment,method-assign] # noqa: SLF001


def _main(errand: Errand, report: Connection) -> None:
    # its parent is the fork server, which ends when the tests do, however they do
    processes._prctl(processes._PR_SET_PDEATHSIG, signal.SIGKILL)  # noqa: SLF001
    steps = _Steps(errand, report)
    steps.install()
    asyncio.run(_work(errand, steps, report))


def _set_pace(errand: Errand) -> None:
    """Let the program do its errand and nothing else, and wait for nothing that cannot come."""
    if errand.job == "carry on":
        app_runtime._RESUME_LOOK_S = 0.0  # noqa: SLF001 - as soon as it is up
        finisher.ROUND_S = 0.05
    else:  # nothing but the errand itself
        app_runtime._RESUME_LOOK_S = _FOREVER_S  # noqa: SLF001
        finisher.Finisher._work = _rest  # type: ignore[method-assign] # noqa: SLF001
    if errand.job == "call":  # the twin takes no time to resolve a prompt
        observing.SETTLE_UNSEEN_S = 1.0
    if errand.lease_s is not None:
        leases.LEASE_S = errand.lease_s


async def _work(errand: Errand, steps: _Steps, report: Connection) -> None:
    _set_pace(errand)
    settings = load_settings(errand.env, cwd=errand.folder)
    async with open_runtime(settings, errand.env) as runtime:
        if errand.job == "carry on":
            await _carry_on(settings.database)
            return
        engine = await runtime.engine()
        if errand.job == "call":
            steps.counts = True
            report.send(("answer", await _call(runtime, errand.arguments)))
            return
        if errand.job == "start":
            for prompt in errand.prompts:
                keeper = await engine.start(_request(errand, prompt), str(errand.folder))
                report.send(("answer", keeper.session.id))
            await asyncio.Event().wait()  # until the test kills it
        if errand.starting_shot is not None:
            report.send(("answer", _READY))
            while not errand.starting_shot.exists():
                await asyncio.sleep(0.005)
        steps.counts = True
        answers = await asyncio.gather(*(_end(engine, i, errand) for i in errand.session_ids))
        for answer in answers:
            report.send(("answer", answer))
        steps.counts = False


async def _rest(self: finisher.Finisher) -> None:
    del self
    await asyncio.Event().wait()


async def _call(runtime: app_runtime.Runtime, arguments: Mapping[str, object]) -> str:
    """Call a tool of the whole server, as a client does; return its structured answer as JSON."""
    tool = "opencode-reply" if "sessionId" in arguments else "opencode"
    async with Client(build_server(runtime)) as client:
        result = await client.call_tool_mcp(tool, dict(arguments))
    return json.dumps(result.structured_content)


async def _end(engine: Engine, session_id: str, errand: Errand) -> str:
    try:
        answer = await engine.end(session_id, Principal("local"), errand.action)
    except OpencodeMcpError as error:
        return type(error).__name__
    return "ended" if isinstance(answer, ends.Ended) else f"not confirmed: {answer.reason}"


async def _carry_on(database: Path) -> None:
    """Wait, without calling anything, until the program has ended what was to end."""
    with closing(sqlite3.connect(database)) as file:
        while file.execute("SELECT 1 FROM sessions WHERE phase = 'ending'").fetchone():
            await asyncio.sleep(0.02)


def _request(errand: Errand, prompt: str) -> StartRequest:
    return StartRequest(
        owner="local",
        prompt=prompt,
        directory=str(errand.folder),
        timeout_s=errand.timeout_s,
        sandbox=Sandbox.DANGER_FULL_ACCESS,
        approval_policy=ApprovalPolicy.CALLER,
    )


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "fastmcp"])
