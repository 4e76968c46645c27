"""Reads of a tree that are given up: no request of them is left, begun or not."""

from __future__ import annotations

import asyncio
import gc

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine.reading import Tree, read_asks, read_busy
from opencode_mcp.opencode.client import OpencodeClient


@pytest.mark.parametrize("read", [read_asks, read_busy])
async def test_a_read_may_be_given_up_at_each_moment(read: object) -> None:
    """Whoever reads it with others gives it up when one of those fails, were it at once."""
    assert callable(read)
    tree = Tree({"ses_1": "/one", "ses_2": "/two"})
    before = asyncio.all_tasks()
    async with OpencodeClient(
        "http://127.0.0.1:9", username="u", password=None, request_timeout_s=5, clock=Clock()
    ) as client:
        for moments in range(6):
            reading = asyncio.ensure_future(read(client, tree, timeout_s=5))
            for _ in range(moments):
                await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert asyncio.all_tasks() == before
    gc.collect()  # a coroutine that nobody awaited complains here, and warnings are errors
