"""Logging to standard error, in text or JSON; standard output belongs to the protocol.

Our own lines carry ids, never content: what varies goes into `extra`, and appears as `key=value` in
text and as a field in JSON. Texts of exceptions that quote what a caller sent are left out.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeAlias

    _ExcInfo: TypeAlias = (
        tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    )

LogFormat = Literal["text", "json"]

#: read by fastmcp when it is imported: no handler of its own, no wrapped lines (fastmcp facts 12.3)
_FASTMCP_SWITCH = "FASTMCP_LOG_ENABLED"
#: log a caller's arguments at DEBUG (fastmcp facts 12.3), so they never get below INFO
_FRAMEWORKS = ("fastmcp", "mcp")
#: packages whose exceptions quote their input in `str()`
_QUOTING = ("pydantic", "pydantic_core", "fastmcp", "mcp")
_WITHHELD = "(text left out: it may quote content)"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CHAIN_LIMIT = 20


def configure_logging(
    level: str, log_format: LogFormat | None = None, *, stream: TextIO | None = None
) -> None:
    """Send all logging of this process to standard error (or `stream`), in one format.

    `level` is a lower-case level name and rules our own lines; other packages are heard from
    WARNING on, FastMCP and mcp from INFO. `log_format` None: text on a terminal, else JSON. May be
    called again, before or after fastmcp is imported; the last call counts.
    """
    target = sys.stderr if stream is None else stream
    ours = logging.getLevelNamesMapping()[level.upper()]
    os.environ.setdefault(_FASTMCP_SWITCH, "false")
    handler = logging.StreamHandler(target)
    handler.setFormatter(_formatter(log_format or ("text" if target.isatty() else "json")))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(ours, logging.WARNING))
    logging.getLogger("opencode_mcp").setLevel(ours)
    for name in _FRAMEWORKS:
        logger = logging.getLogger(name)
        for old in logger.handlers[:]:
            logger.removeHandler(old)
        logger.propagate = True
        logger.setLevel(max(ours, logging.INFO))
    logging.captureWarnings(capture=True)


def _formatter(log_format: LogFormat) -> logging.Formatter:
    if log_format == "text":
        return TextFormatter()
    from pythonjsonlogger.json import JsonFormatter  # noqa: PLC0415 - only where it is used

    class QuietJsonFormatter(JsonFormatter):
        def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - logging's name
            return exception_text(ei[1])

    return QuietJsonFormatter(
        ["levelname", "name", "message"],
        rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
        timestamp="time",
    )


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.123Z INFO opencode_mcp.app message session_id=ses_1`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Return the record's moment in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line, with the extras at its end."""
        extras = (f" {k}={_word(v)}" for k, v in vars(record).items() if k not in _STANDARD)
        return super().formatMessage(record) + "".join(extras)

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - logging's name
        """Return the traceback without texts that quote content."""
        return exception_text(ei[1])


def _word(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


def exception_text(error: BaseException | None) -> str:
    """Return an exception's traceback, the causes before it, without texts that quote content."""
    parts: list[str] = []
    for _ in range(_CHAIN_LIMIT):
        if error is None:
            break
        frames = traceback.format_tb(error.__traceback__)
        parts.append("".join(["Traceback (most recent call last):\n", *frames, _last_line(error)]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\nAnd then:\n\n".join(reversed(parts))


def _last_line(error: BaseException) -> str:
    kind = type(error)
    package = kind.__module__.partition(".")[0]
    text = _WITHHELD if package in _QUOTING else str(error)
    line = f"{kind.__module__}.{kind.__qualname__}: {text}"
    if isinstance(error, BaseExceptionGroup):
        inner = [exception_text(each).replace("\n", "\n  ") for each in error.exceptions]
        line = "\n  ".join([line, *inner])
    return line
