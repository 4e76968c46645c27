"""What a turn is doing, in a line that a person likes to read while a call watches it.

At most 200 characters, without a line break. The telling part comes first: what, on what, for how
long; then which turn it is, how old, and how many tool calls it has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.opencode.models import PermissionRequest
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.answers import Ask
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.opencode.models import RemoteStatus
    from opencode_mcp.opencode.watch import Running, Watch

#: of one progress text
LINE_CHARS = 200
#: of one turn among several
_SEVERAL_CHARS = 70
_TITLE_CHARS = 24
#: less of what a tool works on, or of what a sub-agent does, tells nothing
_LEGIBLE_CHARS = 10

_MINUTE_S = 60
_HOUR_S = 3600

_STOPPING = {
    StopReason.CANCEL: "stopping: it was cancelled",
    StopReason.TIMEOUT: "stopping: its time limit is over",
    StopReason.LOOP: "stopping: it repeats itself without progress",
    StopReason.END: "stopping: its session is being ended",
}


def describe(keeper: Keeper, clock: Clock) -> str:
    """Return what a turn is doing, for how long, and how far it has come."""
    heard = keeper.watch.call_count if keeper.watch else 0
    calls = max(heard, len(keeper.verdict.tool_calls))  # the read is complete, the events are newer
    made = f", {calls} tool call{'' if calls == 1 else 's'}" if calls else ""
    age = f" · turn {keeper.turn.number} for {duration(keeper.elapsed_s)}{made}"
    return _doing(keeper, clock, LINE_CHARS - len(age)) + age


def describe_several(head: str, keepers: Sequence[Keeper], clock: Clock) -> str:
    """Return what several turns are doing: as many as there is room for after `head`."""
    line = head
    for index, keeper in enumerate(keepers):
        name = _cut(_line(keeper.session.title or keeper.session.id), _TITLE_CHARS)
        left = len(keepers) - index
        more = f"; and {left - 1} more" if left > 1 else ""
        room = LINE_CHARS - len(line) - len(f"; {name}: ") - len(more)
        if index and room < _SEVERAL_CHARS // 2:
            return f"{line}; and {left} more"
        line += f"; {name}: {_doing(keeper, clock, min(room, _SEVERAL_CHARS))}"
    return line


def describe_ask(ask: Ask) -> str:
    """Return what a person is asked, in one line."""
    if isinstance(ask, PermissionRequest):
        about = ", ".join(ask.patterns[:3])
        return _cut(_line(f"permission for {ask.permission} {about}"), LINE_CHARS // 2)
    said = ask.questions[0].question if ask.questions else ""
    return _cut(_line(f"an answer: {said}"), LINE_CHARS // 2)


def duration(seconds: float) -> str:
    """Return a time as people say it: `12 s`, `2 min 5 s`, `1 h 2 min`."""
    whole = max(0, round(seconds))
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


def _doing(keeper: Keeper, clock: Clock, room: int) -> str:
    """Return what goes on now, in at most `room` characters; what holds it up comes first."""
    held_up = _held_up(keeper, clock)
    if held_up is not None:
        return _cut(_line(held_up), room)
    watch = keeper.watch
    if watch is None:
        return "running"
    if watch.running:
        return _tools(watch, keeper.session.directory, room)
    if watch.text_chars is not None:
        return _cut(f"writing its answer ({watch.text_chars:,} characters so far)", room)
    return _cut(f"thinking ({duration(watch.quiet_s)})", room)


def _held_up(keeper: Keeper, clock: Clock) -> str | None:
    """Return what keeps the turn from going on; None: nothing does."""
    verdict = keeper.verdict
    if keeper.trouble:
        since = duration((clock.now() - keeper.trouble.since).total_seconds())
        return f"OpenCode cannot be asked ({since}): {keeper.trouble.reason}"
    if keeper.turn.stop_reason is not None:
        return _STOPPING[keeper.turn.stop_reason]
    if verdict.status is TurnStatus.WAITING:
        return _waiting(keeper, clock)
    return None if verdict.retry is None else _retrying(verdict.retry, clock)


def _waiting(keeper: Keeper, clock: Clock) -> str:
    """Return what the turn waits for, and until when."""
    asks = keeper.verdict.pending
    said = f"waiting for {describe_ask(asks[0])}"
    times = keeper.verdict.ask_times.get(asks[0].id)
    if times is not None:
        left_s = (times.deadline_at - clock.now()).total_seconds()
        said += f" ({duration(left_s)} left)"
    return said + (f", and {len(asks) - 1} more" if len(asks) > 1 else "")


def _retrying(status: RemoteStatus, clock: Clock) -> str:
    """Return why, how often and when the provider is asked again."""
    facts = [] if status.attempt is None else [f"attempt {status.attempt}"]
    if status.next is not None:
        facts.append(f"again in {duration((status.next - clock.now()).total_seconds())}")
    how = f" ({', '.join(facts)})" if facts else ""
    return f"the provider is being retried{how}: {status.message or 'it gave no reason'}"


def _tools(watch: Watch, directory: str, room: int) -> str:
    """Return which tool is running; of a sub-agent, also what that does."""
    own = [call for call in watch.running if not call.is_child]
    inner = [call for call in watch.running if call.is_child]
    shown = own[-1] if own else inner[-1]
    others = len(own or inner) - 1
    end = f" (running {duration(watch.ran_s(shown))})" + (f", {others} more" if others else "")
    room -= len(end)
    half = room // 2
    if shown.tool == "task" and inner and half - 3 >= _LEGIBLE_CHARS:
        return f"{_named(shown, directory, half)} > {_named(inner[-1], directory, half - 3)}{end}"
    return _named(shown, directory, room) + end


def _named(call: Running, directory: str, room: int) -> str:
    """Return a tool and what it works on; of a long path, the end is kept."""
    about = call.about.removeprefix(directory.rstrip("/") + "/")
    if call.tool == "task":
        return _cut(f"sub-agent {about}".strip(), room)
    tool = _line(call.tool)
    if not about or room < _LEGIBLE_CHARS:
        return _cut(tool, room)
    name = _cut(tool, room // 2)
    left = room - len(name) - 2
    is_path = "/" in about and " " not in about
    return f"{name}: {_cut_front(about, left) if is_path else _cut(about, left)}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 0)] + "…"


def _cut_front(text: str, room: int) -> str:
    return text if len(text) <= room else "…" + text[len(text) - room + 1 :]
