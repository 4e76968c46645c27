"""What clients made with the SDKs are to do, over either transport.

A class for each transport, in a file of its own: xdist gives a file to one worker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS, bash
from tests_clients.support.cases import Known, cases
from tests_clients.support.looking import first_session, quiet
from tests_clients.support.sdk_clients import KINDS, Kind, Person, Url, connected

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness
    from tests_clients.support.home import ClientHome

#: `caller` is what a session is started with where nobody can be asked
_TELLS_OF_CALLER = "approval-policy caller"


class SdkTests:
    """The tests. A class of them has a fixture `server`."""

    @pytest.fixture(params=KINDS, ids="-".join)
    def kind(self, request: pytest.FixtureRequest) -> Kind:
        """Each SDK, in each era that it speaks."""
        found: Kind = request.param
        return found

    async def test_every_tool_works_once(
        self, kind: Kind, server: Url | None, home: ClientHome, project: Path, asking: Path
    ) -> None:
        home.set("codex_tools", value=True)
        known: Known = {}
        async with connected(kind, home, server) as client:
            for case in cases(project, asking):
                result = await client.call(case.tool, case.arguments(known))
                assert not result.is_error, result.structured["content"]
                case.learn(result.structured, known)

    @pytest.mark.parametrize("person", ["accept", "decline", "cancel", None])
    async def test_a_person_is_asked_where_the_client_can_and_else_nobody(
        self, kind: Kind, server: Url | None, person: Person, home: ClientHome, asking: Path
    ) -> None:
        """Over HTTP nobody can be asked in the handshake era (docs/http.md)."""
        prompt = f"{bash('touch asked')}\nTHEN\nSAY:over"
        arguments = {"prompt": prompt, "cwd": str(asking), "approval-policy": "on-request"}
        async with connected(kind, home, server, person) as client:
            result = await client.call("opencode", arguments)
            asked = client.asked
            end = {"sessionId": result.structured["sessionId"]}
            ended = await client.call("opencode-end", end)

        can_ask = person is not None and (server is None or kind.era == "modern")
        assert len(asked) == can_ask
        assert (asking / "asked").exists() == (can_ask and person == "accept")
        warnings = {
            warning["code"]: warning["message"] for warning in result.structured.get("warnings", ())
        }
        assert ("APPROVAL_REJECTED" in warnings) == (not (can_ask and person == "accept"))
        if not can_ask:
            assert _TELLS_OF_CALLER in warnings["APPROVAL_REJECTED"]
        assert ended.structured["status"] == "ended"

    async def test_a_call_that_is_given_up_stops_its_turn(
        self, kind: Kind, server: Url | None, home: ClientHome, project: Path, witness: Witness
    ) -> None:
        """Not over HTTP in the handshake era: the SDKs cancel by a message of its own then.

        A stateless server cannot tell whose call that is, and the stream stays open (docs/http.md).
        """
        is_told = server is None or kind.era == "modern"
        async with connected(kind, home, server) as client:
            arguments = {"prompt": ENDLESS, "cwd": str(project), "wait-seconds": 600}
            call = asyncio.create_task(client.call("opencode", arguments))
            session_id = await first_session(witness, project)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            if not is_told:
                stop = {"sessionId": session_id, "wait-ms": 20_000}
                stopped = await client.call("opencode-cancel", stop)
                assert stopped.structured["accepted"]
                assert not stopped.structured["alreadyDone"]
            await quiet(witness, session_id)
            after = await client.call("opencode-end", {"sessionId": session_id})

            assert after.structured["status"] == "ended"

    @pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids="-".join)
    async def test_a_long_call_is_heard_of(
        self, kind: Kind, server: Url | None, home: ClientHome, project: Path
    ) -> None:
        heard: list[None] = []
        async with connected(kind, home, server) as client:
            arguments = {"prompt": "SLOW:120,10", "cwd": str(project)}
            result = await client.call("opencode", arguments, lambda: heard.append(None))

        assert result.structured["status"] == "completed"
        assert len(heard) >= 2, "not only that it began"
