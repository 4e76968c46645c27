"""What is made sure of before a prompt goes out, on the twin: a folder that is warm and well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine.admission import warm
from opencode_mcp.opencode_errors import OpencodeUnavailableError
from opencode_mcp.records import InstanceKind
from tests.twin import Body, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opencode_mcp.engine.instances import Connection
    from tests.support.bridge import Bridge
    from tests.twin import Twin

PROVIDERS = "GET /config/providers"
DISPOSE = "POST /instance/dispose"


def poison(twin: Twin) -> None:
    """Make a folder's providers unreadable as long as OpenCode's own retries last."""
    twin.fail(Status(503), path=r"^/config/providers$", times=4)


async def test_a_folder_is_warmed_once(bridge: Bridge, twin: Twin, project: Path) -> None:
    session_id = (await bridge.start("SAY:one", project)).session_id
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:two")
    await bridge.start("SAY:three", project)
    lines = twin.lines()
    assert lines.count(PROVIDERS) == 1
    assert lines.index(PROVIDERS) < lines.index("POST /session")


async def test_a_folder_is_warmed_again_after_a_gap_in_the_events(
    connect: Callable[[InstanceKind], Connection], twin: Twin, project: Path
) -> None:
    """OpenCode may be another process by then, which has read nothing yet."""
    connection = connect(InstanceKind.ATTACH)
    await warm(connection, str(project))
    connection.events.generation += 1
    await warm(connection, str(project))
    assert twin.lines() == [PROVIDERS] * 2


async def test_a_poisoned_folder_of_our_own_opencode_is_disposed(
    connect: Callable[[InstanceKind], Connection], twin: Twin, project: Path
) -> None:
    poison(twin)
    await warm(connect(InstanceKind.MANAGED), str(project))
    lines = twin.lines()
    assert lines.count(DISPOSE) == 1
    assert lines[-1] == PROVIDERS


async def test_a_poisoned_folder_of_somebody_elses_opencode_is_told_and_left(
    connect: Callable[[InstanceKind], Connection], twin: Twin, project: Path
) -> None:
    """A dispose hits everybody's sessions (facts 9.5)."""
    poison(twin)
    with pytest.raises(OpencodeUnavailableError):
        await warm(connect(InstanceKind.ATTACH), str(project))
    assert DISPOSE not in twin.lines()


async def test_a_poisoned_folder_in_which_a_turn_runs_is_left(
    connect: Callable[[InstanceKind], Connection], bridge: Bridge, twin: Twin, project: Path
) -> None:
    await bridge.begin("SLOW:100000,50", project)
    poison(twin)
    with pytest.raises(OpencodeUnavailableError):
        await warm(connect(InstanceKind.MANAGED), str(project))
    assert DISPOSE not in twin.lines()


async def test_a_catalogue_of_many_megabytes_stops_no_turn(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    models = {f"m{n}": {"id": f"m{n}", "name": "x" * 1_000} for n in range(6_000)}
    providers = {"providers": [{"id": "scripted", "models": models}], "default": {}}
    large = twin.fail(Body(json.dumps(providers).encode()), path=r"^/config/providers$")
    answer = await bridge.start("SAY:one", project)
    assert (len(large.hits), answer.status) == (1, "completed")


async def test_an_agent_that_a_configuration_names_can_be_named(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Tried on 1.18.33: what `opencode.json` leaves out of an agent is null, even of `build`."""
    listed = [{"name": "build", "hidden": None}, {"name": "title", "hidden": True}, {"name": "x"}]
    twin.fail(Body(json.dumps(listed).encode()), path=r"^/agent$", times=2)
    answer = await bridge.start("SAY:one", project, agent="build")
    assert answer.status == "completed", answer.text
    hidden = await bridge.call("opencode", prompt="SAY:x", cwd=str(project), agent="title")
    assert hidden.error == "INVALID_ARGUMENT"


async def test_an_agent_that_opencode_info_does_not_list_is_refused(
    bridge: Bridge, project: Path
) -> None:
    """Facts 11.4: `general` and `explore` are for agents. What is named instead is listed."""
    for agent in ("general", "compaction"):
        answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project), agent=agent)
        assert answer.error == "INVALID_ARGUMENT"
        assert "2 are, for example: " in answer.text
        assert not {"explore", "general"} & set(answer.text.split("example: ")[1].split(", "))
