"""Logging to standard error, in text or JSON; standard output belongs to the protocol.

Our own lines are events (`log_events.py`): what varies goes into `extra`, and appears as
`key=value` in text and as a field in JSON, with the ids of what is done. No content gets here. What
others log is cut to its first line, since more of it quotes what they were given (pydantic's
errors, asyncio's tasks); texts of exceptions that quote are left out; and uvicorn's access lines,
with whatever a client puts into a query, are off.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

from opencode_mcp.log_events import CONTENT_LOGGER, Event, current_ids

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
#: bring handlers of their own, or are given some by uvicorn's default settings
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access")
_ACCESS = "uvicorn.access"
#: packages whose exceptions never quote what they were given; nor does an OSError. Any other may:
#: a KeyError of a dict, a ValueError of `int`, pydantic's
_DISCREET = ("opencode_mcp", "aiohttp", "sqlite3")
_WITHHELD = "(text left out: it may quote content)"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CHAIN_LIMIT = 20
#: a quarter of the bytes for which a pipe has room if it has any (PIPE_BUF), since a character may
#: take four
_PIECE_CHARS = select.PIPE_BUF // 4


def configure_logging(
    level: str,
    log_format: LogFormat | None = None,
    *,
    content: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Send all logging of this process to standard error (or `stream`), in one format.

    `level` is a lower-case level name and rules our own lines; other packages are heard from
    WARNING on, FastMCP and mcp from INFO. `log_format` None: text on a terminal, else JSON.
    `content`: prompts and answers are logged, too. May be called again, before or after fastmcp and
    uvicorn are imported; the last call counts. uvicorn must not configure logging itself
    (`log_config=None`).
    """
    target = sys.stderr if stream is None else stream
    ours = logging.getLevelNamesMapping()[level.upper()]
    os.environ.setdefault(_FASTMCP_SWITCH, "false")
    handler = _Unhurried(target)
    handler.setFormatter(_formatter(log_format or ("text" if target.isatty() else "json")))
    handler.addFilter(complete)
    root = logging.getLogger()
    _without_handlers(root)
    root.addHandler(handler)
    root.setLevel(max(ours, logging.WARNING))
    logging.getLogger("opencode_mcp").setLevel(ours)
    logging.getLogger(CONTENT_LOGGER).disabled = not content
    for name in (*_FRAMEWORKS, *_UVICORN):
        logger = logging.getLogger(name)
        _without_handlers(logger)
        logger.propagate = name != _ACCESS  # without any handler uvicorn does not make the line
        logger.disabled = name == _ACCESS
        logger.setLevel(max(ours, logging.INFO if name in _FRAMEWORKS else logging.WARNING))
    logging.captureWarnings(capture=True)


class _Unhurried(logging.StreamHandler[TextIO]):
    """Writes lines while there is room for them, and never waits.

    A client that starts us may not read our standard error. Once its pipe is full, a write would
    wait for ever, and everything with it. So what has no room is dropped, and that is told as soon
    as there is room again.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._dropped = 0
        self._before = ""
        self._room = select.poll()
        try:
            self._room.register(stream.fileno(), select.POLLOUT)
        except (OSError, ValueError):  # no file: a test's
            self._has_file = False
        else:
            self._has_file = True

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or count it as dropped."""
        if self._has_file and not self._room.poll(0):
            self._dropped += 1
            return
        if self._dropped:
            self._write(self.format(_dropped_lines(self._dropped)))
            self._dropped = 0
        try:
            self._write(self.format(record))
        except Exception:  # noqa: BLE001 - as logging does it: a line must not break its program
            self.handleError(record)

    def _write(self, line: str) -> None:
        text = self._before + line + self.terminator
        self._before = ""
        # while the pipe is said to have room, so many bytes never wait
        for start in range(0, len(text), _PIECE_CHARS):
            if start and self._has_file and not self._room.poll(0):
                self._dropped += 1
                self._before = self.terminator  # the rest of this line will not come
                return
            self.stream.write(text[start : start + _PIECE_CHARS])
            self.stream.flush()


def _dropped_lines(count: int) -> logging.LogRecord:
    level, words = Event.LINES_DROPPED.value
    record = logging.LogRecord(__name__, level, "", 0, words, None, None)
    vars(record).update(event=Event.LINES_DROPPED.name.lower(), count=count)
    return record


def _without_handlers(logger: logging.Logger) -> None:
    for old in logger.handlers[:]:
        logger.removeHandler(old)


def complete(record: logging.LogRecord) -> bool:
    """Add the ids of what is done to a record; keep of others' messages the first line only."""
    if record.name.partition(".")[0] != "opencode_mcp":
        lines = record.getMessage().splitlines()
        record.msg, record.args = (lines[0] if lines else ""), None
    for name, value in current_ids().items():
        if name not in vars(record):
            setattr(record, name, value)
    return True


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
    is_discreet = package in _DISCREET or isinstance(error, OSError)
    text = str(error) if is_discreet else _WITHHELD
    line = f"{kind.__module__}.{kind.__qualname__}: {text}"
    if isinstance(error, BaseExceptionGroup):
        inner = [exception_text(each).replace("\n", "\n  ") for each in error.exceptions]
        line = "\n  ".join([line, *inner])
    return line
