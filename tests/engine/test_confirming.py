"""The aborts of what still runs after a delete: each is sent, whatever becomes of another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine.confirming import _abort_all
from opencode_mcp.engine.reading import Tree
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode_errors import OpencodeError
from tests.twin import Hang, Status, Twin

if TYPE_CHECKING:
    from pathlib import Path


async def test_an_abort_that_is_refused_does_not_keep_another_from_its_answer(
    tmp_path: Path,
) -> None:
    async with (
        Twin(tmp_path) as twin,
        OpencodeClient(
            twin.url,
            username=twin.username,
            password=twin.password,
            request_timeout_s=30,
            clock=Clock(),
        ) as client,
    ):
        folder = str(tmp_path)
        one, two = [
            (await client.create_session(folder, title=name, metadata={})).id
            for name in ("one", "two")
        ]
        refused = twin.fail(Status(400), path=rf"/{one}/abort$", times=None)
        slow = twin.fail(Hang(), path=rf"/{two}/abort$")
        tree = Tree({one: folder, two: folder})
        aborting = asyncio.ensure_future(_abort_all(client, tree, [one, two], 30))
        await slow.reached.wait()
        await refused.reached.wait()
        await asyncio.wait({aborting}, timeout=0.5)
        assert not aborting.done(), "the other's answer is waited for"
        slow.release()
        with pytest.raises(OpencodeError, match="400"):
            await aborting
