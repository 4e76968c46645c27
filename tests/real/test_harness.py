"""The witness must be able to testify against us: what runs or waits, it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.real.support.faulty_proxy import FaultyProxy
from tests.real.support.scripts import ENDLESS, ask_which, bash, subagent
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.opencode_server import OpencodeServer
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness


async def left_of(witness: Witness, session_id: str, project: Path, marker: Marker) -> list[str]:
    """Wait until a session has left something to see; free OpenCode of it afterwards."""

    async def check() -> list[str]:
        return await witness.leftovers(session_id, project, marker=marker)

    return await eventually(check, what="the witness sees something")


async def test_a_stream_is_seen_until_it_is_stopped(
    witness: Witness, project: Path, marker: Marker
) -> None:
    session_id = await witness.create(project)
    await witness.prompt(session_id, {"type": "text", "text": ENDLESS})
    await witness.streaming(session_id)

    assert f"{session_id} streams" in await left_of(witness, session_id, project, marker)
    with pytest.raises(AssertionError, match="still exists"):
        await witness.ended(session_id, project)
    await witness.abort(session_id)


async def test_a_shell_command_is_seen_in_the_process_table(
    witness: Witness, project: Path, marker: Marker
) -> None:
    session_id = await witness.create(project)
    await witness.prompt(session_id, {"type": "text", "text": bash(marker.command)})
    await eventually(marker.alive, what="the command runs")

    left = await left_of(witness, session_id, project, marker)
    await witness.abort(session_id)

    assert [item for item in left if item.startswith("process ")]
    await eventually(marker.gone, what="the command is gone")


async def test_requests_that_wait_are_seen_after_an_abort_too(
    witness: Witness, asking: Path, marker: Marker
) -> None:
    """OpenCode: an abort leaves them listed (facts 5.5)."""
    asks = await witness.create(asking)
    await witness.prompt(asks, {"type": "text", "text": bash(marker.command)})
    wonders = await witness.create(asking)
    await witness.prompt(wonders, {"type": "text", "text": ask_which()})

    for session_id, waits in ((asks, witness.permissions), (wonders, witness.questions)):

        async def check(waits: object = waits) -> bool:
            assert callable(waits)
            return bool(await waits(asking))

        await eventually(check, what="it waits")
        await witness.abort(session_id)
        left = await left_of(witness, session_id, asking, marker)
        assert [item for item in left if item.endswith("waits")]


async def test_a_subagent_is_found(witness: Witness, project: Path) -> None:
    session_id = await witness.create(project)
    await witness.prompt(session_id, {"type": "text", "text": subagent(ENDLESS)})

    async def check() -> bool:
        return bool(await witness.children(session_id))

    await eventually(check, what="it has a child")
    (child,) = await witness.children(session_id)
    await witness.streaming(child["id"])
    await witness.abort(session_id)
    await witness.idle(project)


async def test_the_proxy_refuses_fails_counts_and_recovers(opencode: OpencodeServer) -> None:
    async with FaultyProxy(opencode.url) as proxy, aiohttp.ClientSession(proxy.url) as http:

        async def health() -> int:
            async with http.get("/global/health") as answer:
                return answer.status

        unauthorized = await health()
        proxy.fail("GET", "^/global/health$", times=1)
        failed = await health()
        after_failure = await health()
        await proxy.refuse()
        with pytest.raises(aiohttp.ClientError):
            await health()
        await proxy.recover()
        recovered = await health()

        assert (unauthorized, failed, after_failure, recovered) == (401, 503, 401, 401)
        assert [seen.status for seen in proxy.seen if seen.status] == [401, 503, 401, 401]


async def test_a_hanging_proxy_answers_once_it_recovers(opencode: OpencodeServer) -> None:
    impatient = aiohttp.ClientTimeout(total=0.5)
    async with FaultyProxy(opencode.url) as proxy, aiohttp.ClientSession(proxy.url) as http:
        await proxy.hang()
        with pytest.raises(TimeoutError):
            await http.get("/global/health", timeout=impatient)
        await proxy.recover()

        async with http.get("/global/health") as answer:
            assert answer.status == 401


async def test_the_model_says_who_is_asking(
    witness: Witness, project: Path, model: ScriptedModel
) -> None:
    session_id = await witness.create(project)
    await witness.prompt(session_id, {"type": "text", "text": "SAY:hello"})

    async def check() -> bool:
        return len(await witness.messages(session_id)) > 1 and not await witness.busy(project)

    await eventually(check, what="it answered")
    mine = [request for request in model.requests if request.session_id == session_id]
    assert [request.prompt for request in mine if request.tools] == ["SAY:hello"]
    assert {request.outcome for request in mine} == {"done"}
