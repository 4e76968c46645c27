"""The situations that a session may be in when somebody stops or ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.real.support.scripts import ENDLESS, ask_which, bash, subagent
from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

#: of text and of a file alike; a prompt may have two million characters
_BIG_BYTES = 3_000_000
#: In 24 of 60 aborts of a parent its next step was asked for, because the child ended first: a
#: model that answers at once would then end the turn by itself.
_PARENT_GOES_ON = f"\nTHEN\n{ENDLESS}"


@dataclass(frozen=True)
class Scene:
    """Where a session is brought before it is ended."""

    bridge: Bridge
    witness: Witness
    #: a folder in which bash needs leave
    asking: Path
    #: a folder in which everything is allowed
    project: Path
    marker: Marker


@dataclass(frozen=True)
class Reached:
    """A session in the state that was wanted."""

    session_id: str
    folder: Path
    tree: tuple[str, ...] = ()
    running: bool = True
    permissions: int = 0
    questions: int = 0


async def idle(scene: Scene) -> Reached:
    answer = await scene.bridge.start("SAY:ready", scene.project)
    return Reached(answer.session_id, scene.project, running=False)


async def streaming(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(ENDLESS, scene.project)
    await scene.witness.streaming(session_id)
    return Reached(session_id, scene.project)


async def silent_model(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin("HANG", scene.project)
    await scene.witness.streaming(session_id)
    return Reached(session_id, scene.project)


async def shell_command(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(bash(scene.marker.command), scene.project)
    await eventually(scene.marker.alive, what="the command runs")
    return Reached(session_id, scene.project)


async def waiting_permission(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(
        bash(scene.marker.command), scene.asking, approval_policy="caller"
    )
    await waits(scene.witness.permissions, scene.asking)
    return Reached(session_id, scene.asking, permissions=1)


async def waiting_question(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(ask_which(), scene.asking, approval_policy="caller")
    await waits(scene.witness.questions, scene.asking)
    return Reached(session_id, scene.asking, questions=1)


async def just_prompted(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(ENDLESS, scene.project)
    return Reached(session_id, scene.project)


async def just_prompted_big(scene: Scene) -> Reached:
    prompt = ENDLESS + "\n" + "ö" * (_BIG_BYTES // 2)
    session_id = await scene.bridge.begin(prompt, scene.project)
    return Reached(session_id, scene.project)


async def just_given_a_file(scene: Scene) -> Reached:
    """Let another client prompt with a file: its message appears seconds later (facts 4.6)."""
    answer = await scene.bridge.start("SAY:ready", scene.project)
    big = scene.project / "big.txt"
    big.write_text("a line of it all\n" * (_BIG_BYTES // 17), encoding="utf-8")
    await scene.witness.prompt(
        answer.session_id,
        {"type": "text", "text": ENDLESS},
        {"type": "file", "mime": "text/plain", "url": big.as_uri(), "filename": big.name},
    )
    return Reached(answer.session_id, scene.project)


async def asking_subagent(scene: Scene) -> Reached:
    script = subagent(bash(scene.marker.command)) + _PARENT_GOES_ON
    session_id = await scene.bridge.begin(script, scene.asking, approval_policy="caller")
    await waits(scene.witness.permissions, scene.asking)
    children = await scene.witness.children(session_id)
    tree = tuple(child["id"] for child in children)
    return Reached(session_id, scene.asking, tree=tree, permissions=1)


async def streaming_subagent(scene: Scene) -> Reached:
    session_id = await scene.bridge.begin(subagent(ENDLESS) + _PARENT_GOES_ON, scene.project)

    async def child() -> str | None:
        found = await scene.witness.children(session_id)
        return str(found[0]["id"]) if found else None

    child_id = await eventually(child, what="a sub-agent")
    assert child_id is not None
    await scene.witness.streaming(child_id)
    return Reached(session_id, scene.project, tree=(child_id,))


async def retrying_provider(scene: Scene) -> Reached:
    """Wait for the back-off, in which an abort leaves no error in the message (facts 4.4)."""
    session_id = await scene.bridge.begin("STATUS:503", scene.project)

    async def refused() -> bool:
        asked = [one for one in scene.witness.model.requests if one.session_id == session_id]
        return any(one.outcome == "status 503" for one in asked)

    await eventually(refused, what="the provider refused")
    return Reached(session_id, scene.project)


async def waits(read: Callable[[Path], Awaitable[list[dict[str, object]]]], folder: Path) -> None:
    """Wait until something waits in a folder."""

    async def check() -> bool:
        return bool(await read(folder))

    await eventually(check, what="a request waits")


SITUATIONS = {
    situation.__name__.replace("_", "-"): situation
    for situation in (
        idle,
        streaming,
        silent_model,
        shell_command,
        waiting_permission,
        waiting_question,
        just_prompted,
        just_prompted_big,
        asking_subagent,
        streaming_subagent,
        retrying_provider,
    )
}
