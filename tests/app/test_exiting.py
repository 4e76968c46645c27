"""An exit comes to its end whatever hangs (contract §4)."""

from __future__ import annotations

import asyncio
import signal
import sys

#: in it nothing moves any more once the exit has begun
_STUCK = """
import asyncio, time
from opencode_mcp.app.exiting import Exit

async def main():
    leaving = Exit()
    print("up", flush=True)
    await leaving.closing.wait()
    time.sleep(60)

asyncio.run(main())
"""


async def test_a_process_in_which_nothing_moves_is_gone_after_9_seconds() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _STUCK), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(9):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
