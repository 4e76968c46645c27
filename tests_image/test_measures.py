"""The issue's measure of the start: to healthy, against a bare FastMCP server in the same image."""

from __future__ import annotations

import asyncio
import http.client
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from bench.measure import Stopwatch, alternate
from tests_image.support.container import Container, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests_image.support.image import Image

PAIRS = 7
ALLOWED = 1.5
OURS, BARE = 8000, 8001
#: one tool, one health page, served as FastMCP's own documentation does it
BARE_SERVER = f"""
import uvicorn
from fastmcp import FastMCP
from starlette.responses import PlainTextResponse

mcp = FastMCP("bare")

@mcp.tool
async def ping() -> str:
    return "pong"

@mcp.custom_route("/healthz", methods=["GET"])
async def health(request):
    return PlainTextResponse("ok")

uvicorn.run(mcp.http_app(stateless_http=True), port={BARE}, log_config=None, access_log=False)
"""


async def healthy_ms(container: Container, port: int, log: Path) -> float:
    """Start it; return how long it took until its health page was there."""
    watch = Stopwatch()
    async with running(container, log):
        while not await asyncio.to_thread(_is_well, port):
            await asyncio.sleep(0.01)
        return watch.ms


def _is_well(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    return False


async def test_it_is_healthy_almost_as_soon_as_a_bare_server(
    runtime: Image, tmp_path: Path, measures: list[str]
) -> None:
    volume = runtime.fresh_volume(tmp_path / "data")
    (tmp_path / "bare.py").write_text(BARE_SERVER, encoding="utf-8")
    env = {
        "OPENCODE_MCP_TRANSPORT": "http",
        "OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9",
        "OPENCODE_MCP_AUTH_TOKENS": "alice:0123456789abcdef",
    }
    mounts = [f"bind:{volume}:/data"]
    ours = Container(runtime, env=env, mounts=mounts)
    bare = Container(
        runtime,
        entrypoint=("tini", "--", "python", "/bare.py"),
        mounts=[*mounts, f"bind-ro:{tmp_path / 'bare.py'}:/bare.py"],
    )
    found = await alternate(
        "start to healthy ÷ a bare FastMCP server in the same image",
        lambda: healthy_ms(ours, OURS, tmp_path / "ours.log"),
        lambda: healthy_ms(bare, BARE, tmp_path / "bare.log"),
        times=PAIRS,
        allowed=ALLOWED,
        warm_up=1,
    )
    measures.append(
        f"{found.name}: {found.ratio:.3f} (pair by pair {found.pairwise:.3f}, allowed {ALLOWED});"
        f" medians of {PAIRS} pairs: {sorted(found.ours)[PAIRS // 2]:.0f} ms and"
        f" {sorted(found.by_hand)[PAIRS // 2]:.0f} ms"
    )
    assert found.ratio <= ALLOWED
