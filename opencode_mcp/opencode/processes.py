"""Processes below us: none escapes, and none is left.

Linux gives a "subreaper" every orphan among its descendants, also those that went into a session
of their own. So a subreaper without a child has no descendant at all: that is the proof by which
the supervisor frees the instance's lock. Elsewhere we find only what we saw before its parent died.
Standard library and psutil only: the supervisor imports it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: loaded before any fork: a child between fork and exec should load nothing
_LIBC = ctypes.CDLL(None, use_errno=True)
#: how long to wait between two looks at processes that were just killed: mostly 1 ms is enough,
#: one in an uninterruptible read may take for ever
_KILL_PAUSES_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25)


def become_subreaper() -> None:
    """Become the parent of all orphans among our descendants. Not inherited by children."""
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> Callable[[], None]:
    """Return a function for a new child to call before exec: the kernel kills it with its parent.

    To be called by the parent. "Parent" is the thread that forks: it must be one that lives on.
    """
    parent = os.getpid()

    def in_child() -> None:
        if sys.platform == "linux":
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked for the signal
            os._exit(1)

    return in_child


def reap() -> dict[int, int] | None:
    """Collect all children that ended: pid -> exit code (negative: a signal). None: no children."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended or None
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def descendants() -> list[psutil.Process]:
    """Return all processes below this one."""
    return psutil.Process().children(recursive=True)


def kill_descendants(seen_before: Iterable[psutil.Process] = ()) -> None:
    """SIGKILL everything below us, and return only when nothing is left, however long that takes.

    `seen_before`: what was below us earlier, for systems without subreapers. psutil tells a
    process from a later one with its pid.
    """
    _kill(seen_before)
    look = 0
    while reap() is not None:
        _kill(descendants())
        time.sleep(_KILL_PAUSES_S[min(look, len(_KILL_PAUSES_S) - 1)])
        look += 1


def free_port() -> int:
    """Return a loopback port that is free now; somebody may take it before we do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        # AccessDenied: a setuid program; it is looked at again until it is gone by itself
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()


def _prctl(option: int, value: int) -> None:
    arguments = (ctypes.c_ulong(argument) for argument in (value, 0, 0, 0))
    if _LIBC.prctl(ctypes.c_int(option), *arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}): {os.strerror(error)}")
