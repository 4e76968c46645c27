"""What an HTTP server has done before anybody calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.opencode.managed_support import eventually, supervisors
from tests.opencode.stand_ins import IDLE, fake_opencode
from tests.support.bridges import bare_env
from tests.support.http_bridge import run_http

if TYPE_CHECKING:
    from tests.support.bridges import Bridges


async def test_a_managed_opencode_is_started_with_the_server_and_goes_with_it(
    bridges: Bridges, tmp_path: Path
) -> None:
    """Contract §4, `MODE`: over HTTP at start-up, so that the first call need not wait for it."""
    binary = fake_opencode(tmp_path / "opencode", IDLE)
    env = bridges.settings({"MODE": "managed", "OPENCODE_BIN": binary})
    folder = Path(f"{bridges.database}.instances")
    async with run_http(bare_env(tmp_path / "home") | env, tmp_path, name="managed"):
        await eventually(lambda: bool(supervisors(folder)), "its OpenCode runs")
    await eventually(lambda: not supervisors(folder), "its OpenCode is gone")
