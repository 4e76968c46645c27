"""Why a managed OpenCode did not come up, in words for whoever has to mend it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opencode_mcp.errors import OpencodeMcpError
from opencode_mcp.opencode.generation import NOT_OURS
from opencode_mcp.opencode.instance_file import State
from opencode_mcp.opencode_errors import OpencodeStartError, OpencodeUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Generator

    from opencode_mcp.opencode.instance_file import InstanceRecord
    from opencode_mcp.opencode_errors import OpencodeError

_NO_BINARY = (
    "no OpenCode to start: there is no executable {!r}. Set OPENCODE_MCP_OPENCODE_BIN to the "
    "path of one, or OPENCODE_MCP_SERVER_URL to use an OpenCode that runs already, or use the "
    "`bundled` image, which has one."
)
_UNSUPPORTED = (
    "OpenCode ({}) cannot be used: {}; {}. Set OPENCODE_MCP_OPENCODE_BIN to the path of one that"
    " fits."
)


def no_binary(binary: str) -> OpencodeStartError:
    """Return the error for a program that is not there."""
    return OpencodeStartError(_NO_BINARY.format(binary[:100]))


def start_fault(binary: str, record: InstanceRecord | None) -> OpencodeError:
    """Return the error for an instance that died before it was ready; `record`: its last word."""
    lines = () if record is None else record.lines
    if record is not None and record.state is State.UNSUPPORTED:
        why = lines[0] if lines else "it answers otherwise"
        return OpencodeUnsupportedError(_UNSUPPORTED.format(binary, NOT_OURS, why))
    return not_started(binary, lines)


def not_started(binary: str, lines: tuple[str, ...]) -> OpencodeStartError:
    """Return the error for a failed start; `lines`: why, and what OpenCode said last."""
    reason, *output = lines or ("its supervisor was killed",)
    quoted = "".join(f"\n    {line}" for line in output)
    said = f" It said last:{quoted}" if output else " It said nothing."
    return OpencodeStartError(f"OpenCode ({binary}) did not start: {reason}.{said}")


@contextmanager
def file_faults() -> Generator[None, None, None]:
    """Turn what the system refuses us about an instance's files into OpencodeStartError."""
    try:
        yield
    except OpencodeMcpError:  # some of ours are OSErrors, too
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        msg = (
            f"the files of the managed OpenCode cannot be used as user id {os.geteuid()}:"
            f" {error.strerror or error}{where}; make their folder, beside the database, writable"
        )
        raise OpencodeStartError(msg) from error
