"""The file of a managed instance: its supervisor's word, and the lock that proves its life.

In the folder beside the database (0700), all files 0600:

    <id>.json      this record; locked exclusively as long as anything of the instance runs
    <id>.clients   locked shared by each process of ours that uses the instance
    <key>.start    locked exclusively while somebody looks for, or starts, one with these settings
    workdir/       OpenCode's own working folder, empty: each request names its directory

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from opencode_mcp.opencode.locks import lock_descriptor

if TYPE_CHECKING:
    from pathlib import Path

#: a record is under 1 KiB plus `lines` (20 lines of at most 500 characters)
_MAX_BYTES = 1 << 20
#: a reader that meets a half written record (microseconds) looks again
_READ_TRIES = 3
_WRITING_S = 0.001


class State(StrEnum):
    """What the supervisor last said. Only the lock says whether that is still true."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"  #: never became ready; nothing of it runs any more
    UNSUPPORTED = "unsupported"  #: the same: it is no OpenCode that we can drive
    GONE = "gone"  #: was ready once; nothing of it runs any more


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """The content of `<id>.json`. `lines`: why it ended and its last output, no secret in it."""

    id: str
    settings_key: str
    state: State
    url: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    data_id: str = ""
    version: str = ""
    lines: tuple[str, ...] = ()

    def ended(self, state: State, lines: tuple[str, ...] = ()) -> InstanceRecord:
        """Return what is left to say of it when it is over: no address and no password."""
        return replace(self, state=state, url="", username="", password="", lines=lines)


def record_path(folder: Path, instance_id: str) -> Path:
    """Return where the record is, and the lock of the instance's life."""
    return folder / f"{instance_id}.json"


def clients_path(folder: Path, instance_id: str) -> Path:
    """Return the file that each user of the instance locks."""
    return folder / f"{instance_id}.clients"


def start_path(folder: Path, settings_key: str) -> Path:
    """Return the file that whoever starts an instance with these settings locks."""
    return folder / f"{settings_key}.start"


def workdir_path(folder: Path) -> Path:
    """Return OpenCode's own working folder."""
    return folder / "workdir"


def create_locked(folder: Path, record: InstanceRecord) -> int:
    """Make the record's file and return its descriptor, which holds the lock.

    The file gets its name only when it is locked and complete: whoever finds it unlocked has
    therefore found the file of a dead instance. Raises OSError.
    """
    unnamed = folder / f".{record.id}.new"
    fd = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        lock_descriptor(fd)
        write_record(fd, record)
        unnamed.rename(record_path(folder, record.id))
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_record(fd: int, record: InstanceRecord) -> None:
    """Replace the content, in place because the lock is the file's. A reader may see it half done.

    Emptied first and written from the start: half a JSON object is not JSON, so that a reader
    can tell. (And positional writes: two processes share this descriptor's offset.)
    """
    content = json.dumps({name: getattr(record, name) for name in record.__slots__}).encode()
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)


def parse_record(content: bytes) -> InstanceRecord | None:
    """Read a record; None: it is being written just now, or is not one of ours."""
    try:
        fields = json.loads(content)
        record = InstanceRecord(
            **{**fields, "state": State(fields["state"]), "lines": tuple(fields["lines"])}
        )
    except (ValueError, KeyError, TypeError):
        return None
    texts = (getattr(record, name) for name in record.__slots__ if name != "lines")
    return record if all(isinstance(text, str) for text in (*texts, *record.lines)) else None


def read_descriptor(fd: int) -> InstanceRecord | None:
    """Read the record from its open file."""
    return parse_record(os.pread(fd, _MAX_BYTES, 0))


def read_record(path: Path) -> InstanceRecord | None:
    """Read the record; None: missing or unreadable. Blocks for 3 ms if it is not a record."""
    for _ in range(_READ_TRIES):
        try:
            record = parse_record(path.read_bytes())
        except OSError:
            return None
        if record is not None:
            return record
        time.sleep(_WRITING_S)
    return None
