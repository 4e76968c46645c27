"""The name of OpenCode's data: a UUID that we keep in its data folder.

A session can go on in another instance only where its data is the same (contract, 1).
Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "opencode-mcp-data-id"


def data_folder(env: Mapping[str, str]) -> Path:
    """Return where an OpenCode with this environment keeps its data; an empty variable is unset."""
    if data_home := env.get("XDG_DATA_HOME"):
        return Path(data_home) / "opencode"
    home = env.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) / ".local" / "share" / "opencode"


def data_id(folder: Path) -> str:
    """Return the UUID in `folder`, made now if there is none. Two at once: both get the same.

    Raises OSError, and ValueError when the file holds something else.
    """
    path = folder / FILE_NAME
    try:
        return _read(path)
    except FileNotFoundError:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # complete before it has its name, so that nobody reads half of it
    fd, unnamed = tempfile.mkstemp(prefix=f".{FILE_NAME}-", dir=folder)  # 0600
    try:
        with open(fd, "w", encoding="ascii") as file:  # noqa: PTH123 - it is open already
            file.write(f"{uuid4()}\n")
            file.flush()
            os.fsync(fd)
        path.hardlink_to(unnamed)
    except FileExistsError:
        pass  # another one was first
    finally:
        Path(unnamed).unlink()
    return _read(path)


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    try:
        return str(UUID(text))
    except ValueError:
        message = f"{path} does not hold a UUID; remove it to have a new one made"
        raise ValueError(message) from None
