"""Does a folder lie inside the allowed roots? The one judgement of where sessions may run.

Compared as real paths, so that neither `..` nor a symbolic link leads out. What lies outside is
refused before it is looked at: the answer does not tell whether it exists. Remote folders are not
on this machine and can only be compared as text; there `..` and `%` (an encoded `..`) are refused.
"""

from __future__ import annotations

import os
import posixpath
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.errors import PathNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_SHOWN = 100
_MOST_ROOTS_SHOWN = 5


def allowed_directory(
    cwd: str | None, *, default: Path | None, roots: Sequence[Path], remote: bool
) -> str:
    """Return the folder to run in as OpenCode is to get it: the real path; remote: the plain one.

    `roots` are settled already (`real_directory`, `plain_directory`). Raises PathNotAllowedError,
    whose text tells why, and what is allowed.
    """
    if cwd is None and default is None:
        msg = "cwd is required: this server has no default folder."
        raise PathNotAllowedError(msg)
    text = str(default) if cwd is None else cwd
    try:
        folder = plain_directory(text) if remote else _absolute(text)
        if not remote:
            _within(Path(os.path.realpath(folder)), roots)
            folder = real_directory(folder)  # exists; and what it really is lies where it seemed
        return str(_within(folder, roots))
    except ValueError as error:
        hint = "" if cwd is not None else " (the default folder; give cwd)"
        msg = f"cwd {shown(text)}{hint} {error}."
        raise PathNotAllowedError(msg) from None


def real_directory(path: str | Path) -> Path:
    """Return the real path of an existing folder; raise ValueError with the reason otherwise."""
    _absolute(str(path))
    try:
        real = Path(os.path.realpath(path, strict=True))
        is_folder = stat.S_ISDIR(real.stat().st_mode)
    except FileNotFoundError:
        msg = "does not exist"
        raise ValueError(msg) from None
    except OSError as error:
        msg = f"cannot be looked at: {error.strerror}"
        raise ValueError(msg) from None
    if not is_folder:
        msg = "is not a folder"
        raise ValueError(msg)
    return real


def plain_directory(path: str | Path) -> Path:
    """Return a remote folder's path in its one spelling; raise ValueError with the reason."""
    text = str(_absolute(str(path)))
    if ".." in text.split("/"):
        msg = "holds `..`, which cannot be followed on another machine"
        raise ValueError(msg)
    if "%" in text:
        msg = "holds `%`, which could be read as another path"
        raise ValueError(msg)
    return Path(posixpath.normpath("/" + text.lstrip("/")))


def is_too_wide(root: Path, *, home: str) -> bool:
    """Say whether a root must be named to be one: all files, or all of a person's."""
    return str(root) in {"/", os.path.realpath(home)}


def shown(text: str) -> str:
    """Return text for a message: quoted, unprintable characters escaped, cut at 100."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def _absolute(text: str) -> Path:
    if "\0" in text:
        msg = "holds a NUL character"
        raise ValueError(msg)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        msg = "holds characters that no path can have"
        raise ValueError(msg) from None
    if text.startswith("~"):
        msg = "must be an absolute path: `~` is not expanded"
        raise ValueError(msg)
    if not text.startswith("/"):
        msg = "must be an absolute path"
        raise ValueError(msg)
    return Path(text)


def _within(folder: Path, roots: Sequence[Path]) -> Path:
    if any(folder.is_relative_to(root) for root in roots):
        return folder
    names = ", ".join(shown(str(root)) for root in roots[:_MOST_ROOTS_SHOWN]) or "none"
    more = "" if len(roots) <= _MOST_ROOTS_SHOWN else f" and {len(roots) - _MOST_ROOTS_SHOWN} more"
    msg = f"lies outside the allowed folders: {names}{more}"
    raise ValueError(msg)
