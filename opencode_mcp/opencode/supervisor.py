"""The process that keeps a managed OpenCode: `python -m opencode_mcp.opencode.supervisor <id>`.

Three processes, of which two stay:

- the launcher reads its orders from stdin, makes and locks `<id>.json`, forks the keeper and exits
  (so the keeper is nobody's child: no zombie, and not in the tree that an MCP host kills)
- the keeper forks the runner and waits for it
- the runner (runner.py) starts, watches and stops OpenCode

Keeper and runner share the locked descriptor: the lock is free only when both are gone. Each ends
what is left when the other is killed, so a free lock proves that nothing runs any more. (If both
are killed at the very same moment, the parent-death signal ends OpenCode, but not its children.)
OpenCode does not inherit the lock. Standard library and psutil only: this starts within 0.2 s.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from opencode_mcp.opencode.instance_file import (
    InstanceRecord,
    State,
    create_locked,
    read_descriptor,
    workdir_path,
    write_record,
)
from opencode_mcp.opencode.orders import Orders
from opencode_mcp.opencode.processes import become_subreaper, kill_descendants
from opencode_mcp.opencode.runner import STOP_BYTE, Runner

if TYPE_CHECKING:
    from types import FrameType


_LAST_WORDS = frozenset({State.FAILED, State.UNSUPPORTED, State.GONE})


def main() -> int:
    """Be the launcher: return when the keeper runs and the record is there."""
    orders = Orders.from_json(sys.stdin.buffer.read())
    try:
        workdir_path(orders.folder).mkdir(mode=0o700, exist_ok=True)
        record = InstanceRecord(orders.instance_id, orders.settings_key, State.STARTING)
        record_fd = create_locked(orders.folder, record)
    except OSError as error:
        sys.stderr.write(f"{orders.folder}: {error.strerror or error}\n")
        return 1
    if os.fork() == 0:
        _detach()
        _keep(orders, record, record_fd)
    return 0


def _detach() -> None:
    """Let go of whoever started us: the pipes to it, and its terminal's signals."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # handlers that do nothing, for "ignore" would be inherited by OpenCode and all its tools
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, lambda _signal, _frame: None)


def _keep(orders: Orders, record: InstanceRecord, record_fd: int) -> NoReturn:
    """Be the keeper: wait for the runner, then end what it left, however it came to its end."""
    become_subreaper()
    reader, writer = os.pipe()
    runner = os.fork()
    if runner == 0:
        os.close(writer)
        _run(orders, record, record_fd, reader)
    os.close(reader)

    def pass_on(_signal: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # it is ending already
            os.write(writer, STOP_BYTE)

    signal.signal(signal.SIGTERM, pass_on)
    os.waitpid(runner, 0)
    kill_descendants()
    _close_record(record_fd, "its supervisor was killed")
    os._exit(0)


def _run(orders: Orders, record: InstanceRecord, record_fd: int, keeper_fd: int) -> NoReturn:
    """Be the runner. What it could not end because of a fault of ours, the keeper does."""
    try:
        Runner(orders, record, record_fd, keeper_fd).run()
    except BaseException as error:  # noqa: BLE001 - there is nobody above to hear of it
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = "?" if trace is None else trace.tb_lineno
        _close_record(record_fd, f"its supervisor failed: {type(error).__name__}, line {line}")
    finally:
        os._exit(0)


def _close_record(record_fd: int, why: str) -> None:
    """Say in the record that it is over, unless it says so already."""
    record = read_descriptor(record_fd)
    if record is not None and record.state not in _LAST_WORDS:
        state = State.FAILED if record.state is State.STARTING else State.GONE
        write_record(record_fd, record.ended(state, (why,)))


if __name__ == "__main__":
    sys.exit(main())
