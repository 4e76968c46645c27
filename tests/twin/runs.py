"""Everything that runs. It lives in memory: a restart loses it (facts 9.1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.cli.scripted_model import DEFAULT_MODEL, MODELS, PROVIDER
from tests.twin.compaction import Compactor
from tests.twin.shapes import Json, error, new_id, now_ms
from tests.twin.turn import Run

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.twin.asks import Asks
    from tests.twin.events import Bus
    from tests.twin.model import Model
    from tests.twin.world import World

AGENTS = ("build", "explore", "general", "plan")


@dataclass(slots=True)
class Pace:
    """How long things take, in seconds. May be changed while the twin runs.

    The defaults are short; the real ones are in the comments.
    """

    #: 10 s (facts 3.1)
    heartbeat_s: float = 10.0
    #: between the 204 and the user message: an abort in it is lost (facts 4.6)
    resolving_s: float = 0.0
    #: the same for a prompt with a file; 1.3 s for 3.4 MB
    file_resolving_s: float = 0.3
    #: between the user message and `busy`; 18 ms (facts 4.6)
    starting_s: float = 0.02
    #: between the steps of a turn
    step_s: float = 0.0
    #: what an abort needs while a tool or a request is open; 0.3 s (facts 4.2, 4.3)
    tool_abort_s: float = 0.02
    #: the waits before the provider is asked again; 2, 4-5, 9-10 s (facts 8.5). The last one stays
    retries_s: tuple[float, ...] = (0.2, 0.4, 0.8)


class Runs:
    """The running loops of all sessions, and how they are begun and stopped."""

    def __init__(self, world: World, bus: Bus, asks: Asks, model: Model, pace: Pace) -> None:
        self.world = world
        self.bus = bus
        self.asks = asks
        self.model = model
        self.pace = pace
        self.running: dict[str, Run] = {}
        #: shell commands that run now; a kill leaves them alive (facts 9.4)
        self.shells: list[str] = []
        self.compactor = Compactor(self)
        self._prompts: set[asyncio.Task[None]] = set()

    def statuses(self, directory: str) -> dict[str, Json]:
        """List who is not idle in exactly this folder, deleted sessions too (facts 1.7, 6.2)."""
        return {
            run.session_id: run.status
            for run in self.running.values()
            if run.directory == directory and run.status is not None
        }

    def submit(self, session: Json, body: Json, message_id: str) -> asyncio.Task[None]:
        """Take a prompt; what it names is looked at only afterwards (facts 2.4)."""
        return self._spawn(self._prompt(session, body, message_id))

    async def settled(self, session_id: str) -> None:
        """Wait until nothing of the session runs."""
        while session_id in self.running:
            await asyncio.wait({self.running[session_id].task})

    async def abort(self, session_id: str, directory: str | None = None) -> None:
        """Stop what the session does; success for everybody, whatever it did (facts 4.5).

        `directory`: where to say so of a session that does not exist.
        """
        run = self.running.get(session_id)
        if run is not None:
            run.stop()
            await asyncio.wait({run.task})
            return
        known = self.world.sessions.get(session_id)
        place = directory if known is None else known["directory"]
        if place is not None:
            self.tell_idle(session_id, place)

    async def delete(self, session_id: str) -> None:
        """Delete a session and its descendants (facts 6.2, 7.6).

        Its subagents at work are aborted. It itself is not, nor are children that a client made.
        """
        run = self.running.get(session_id)
        for child in [] if run is None else [*run.children]:
            await self.abort(child)
        self.world.delete(session_id)

    def summarize(self, session: Json) -> None:
        """Write a summary into an idle session's history (facts 11.3)."""
        if "model" in session and session["id"] not in self.running:
            run = Run(self, session)
            self.compactor.compact(run, auto=False)
            run.set_status(None)

    async def dispose(self, directory: str | None) -> None:
        """Stop the runs of a folder, or of all, in order, and forget its asks (facts 9.5)."""
        doomed = [run for run in self.running.values() if directory in {None, run.directory}]
        for run in doomed:
            await self.abort(run.session_id)
        self.asks.forget(directory)
        folders = {run.directory for run in doomed} if directory is None else {directory}
        for folder in folders:
            self.bus.publish(folder, "server.instance.disposed", directory=folder)
        if directory is None:
            self.bus.publish("global", "global.disposed")
        self.bus.end_folder(directory)

    async def kill(self) -> None:
        """Stop everything at once, with no trace in the messages (facts 9.2)."""
        tasks = [run.task for run in self.running.values()]
        for run in [*self.running.values()]:
            run.kill()
        for prompt in self._prompts:
            prompt.cancel()
        for task in (*tasks, *self._prompts):
            await asyncio.wait({task})
        self.running.clear()
        self.asks.forget(None)

    def begin(self, session: Json) -> Run:
        """Start a session's loop, or return the one that runs: the prompt joins it (facts 2.8)."""
        run = self.running.get(session["id"])
        if run is None or run.task.done():
            run = Run(self, session)
            self.running[session["id"]] = run
            run.start()
        return run

    def write_prompt(self, session: Json, body: Json, message_id: str) -> Json:
        """Store the user message of a prompt, and what the prompt changes in its session."""
        model = body.get("model") or _model_of(session)
        agent = body.get("agent") or session.get("agent") or "build"
        shown = {"id": model["modelID"], "providerID": model["providerID"], "variant": "default"}
        rules = [
            {"permission": tool, "pattern": "*", "action": "allow" if on else "deny"}
            for tool, on in (body.get("tools") or {}).items()
        ]
        if rules:
            session["permission"] = [*session.get("permission", []), *rules]
        self.world.touch(session, agent=agent, model=shown)
        info = {
            "id": message_id,
            "role": "user",
            "sessionID": session["id"],
            "time": {"created": now_ms()},
            "agent": agent,
            "model": {"providerID": model["providerID"], "modelID": model["modelID"]},
        }
        self.world.put_message(info)
        for part in body["parts"]:
            self.world.put_part(info, {**part, "id": new_id("prt")})
        self.world.touch(session)
        return info

    @staticmethod
    def knows(model: Json) -> bool:
        """Whether a provider offers this model."""
        return bool(model["providerID"] == PROVIDER and model["modelID"] in MODELS)

    def tell_idle(self, session_id: str, directory: str) -> None:
        """Say that a session is idle: always as a pair (facts 3.8)."""
        idle = {"type": "idle"}
        self.bus.publish(directory, "session.status", sessionID=session_id, status=idle)
        self.bus.publish(directory, "session.idle", sessionID=session_id)

    def tell_error(self, session_id: str, directory: str, fault: Json) -> None:
        """Say that something went wrong."""
        self.bus.publish(directory, "session.error", sessionID=session_id, error=fault)

    async def _prompt(self, session: Json, body: Json, message_id: str) -> None:
        has_file = any(part.get("type") == "file" for part in body["parts"])
        await asyncio.sleep(self.pace.file_resolving_s if has_file else self.pace.resolving_s)
        if session["id"] not in self.world.sessions:  # deleted meanwhile: facts 6.4
            return
        agent = body.get("agent")
        if agent is not None and agent not in AGENTS:
            text = f'Agent not found: "{agent}". Available agents: {", ".join(AGENTS)}'
            self._tell_twice(session, text)
            return
        self.write_prompt(session, body, message_id)
        if not body.get("noReply"):
            stopping = self.running.get(session["id"])
            if stopping is not None and stopping.is_stopping:
                await asyncio.wait({stopping.task})
            self.begin(session)

    def _tell_twice(self, session: Json, text: str) -> None:
        """Report a fault as OpenCode does: once for people, once with its stack (facts 2.4)."""
        for said in (text, f"{text}\n    at <anonymous>"):
            self.tell_error(session["id"], session["directory"], error("UnknownError", said))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._prompts.add(task)
        task.add_done_callback(self._prompts.discard)
        return task


def _model_of(session: Json) -> Json:
    chosen = session.get("model")
    if chosen is not None:
        return {"providerID": chosen["providerID"], "modelID": chosen["id"]}
    return {"providerID": PROVIDER, "modelID": DEFAULT_MODEL.partition("/")[2]}
