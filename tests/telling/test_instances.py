"""How a managed OpenCode comes and goes, as the log tells it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest_asyncio

from tests.opencode.managed_support import eventually, supervisors
from tests.opencode.stand_ins import IDLE, fake_opencode
from tests.support.bridges import bare_env
from tests.support.polling import eventually as until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.telling.lines import Log


@pytest_asyncio.fixture
async def env(tmp_path: Path, bridges: Bridges) -> AsyncIterator[dict[str, str]]:
    """Give the environment of a server that manages such a one; all is gone after the test."""
    binary = fake_opencode(tmp_path / "opencode", IDLE)
    yield bare_env(tmp_path / "home") | bridges.settings({"OPENCODE_BIN": binary})
    await eventually(lambda: not supervisors(_folder(bridges)), "the supervisors are gone")


def _folder(bridges: Bridges) -> Path:
    return bridges.database.with_name(f"{bridges.database.name}.instances")


async def test_it_is_started_joined_and_let_go_of(
    log: Log, bridges: Bridges, env: dict[str, str], project: Path
) -> None:
    first, second = await bridges.open(env), await bridges.open(env)
    for bridge in (first, second):
        await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
    await second.close()
    await first.close()
    (started,), (joined,) = log.of("opencode_started"), log.of("opencode_joined")
    left = log.of("opencode_left")

    assert (started["version"], joined["version"]) == ("1.18.33", "1.18.33")
    assert {line["instance_id"] for line in (started, joined, *left)} == {started["instance_id"]}
    assert len(left) == 2
    assert not log.of("opencode_died")


async def test_one_that_dies_under_us_is_told_and_the_next_one_started(
    log: Log, bridges: Bridges, env: dict[str, str], project: Path
) -> None:
    bridge = await bridges.open(env)
    await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
    for process in supervisors(_folder(bridges)):
        with suppress(psutil.NoSuchProcess):  # one half ends with the other
            process.kill()
    await eventually(lambda: not supervisors(_folder(bridges)), "it is gone")

    async def next_one() -> bool:  # one that has just died "does not answer now: call again"
        await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
        return len(log.of("opencode_started")) > 1

    await until(next_one, what="the next one is started")
    await bridge.close()
    first, second = log.of("opencode_started")
    (died,), (gone,) = log.of("opencode_died"), log.of("opencode_gone")

    assert died["instance_id"] == gone["instance_id"] == first["instance_id"]
    assert second["instance_id"] != first["instance_id"]
    assert died["level"] == "WARNING"


async def test_one_that_does_not_come_up_is_told(
    log: Log, bridges: Bridges, env: dict[str, str], project: Path
) -> None:
    bridge = await bridges.open(env | {"OPENCODE_MCP_OPENCODE_BIN": "/nowhere/opencode"})
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
    (line,) = log.of("opencode_start_failed")
    assert line["error_name"] == answer.error == "OPENCODE_UNAVAILABLE"
    assert "/nowhere/opencode" in line["why"]
