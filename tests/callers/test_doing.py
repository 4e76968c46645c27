"""The lines that a person reads while a call watches: what is done, on what, for how long."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opencode_mcp.callers.doing import describe, describe_ask, describe_several, duration
from opencode_mcp.engine.effects import ToolCall
from opencode_mcp.engine.outcome import AskTimes, TurnStatus, Verdict
from opencode_mcp.engine.trouble import Trouble
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest, RemoteStatus
from opencode_mcp.opencode.watch import Running, Watch
from opencode_mcp.records import Session, StopReason, Submission, Turn
from tests.support.clocks import START, HandClock

if TYPE_CHECKING:
    from opencode_mcp.engine.keeper import Keeper

_RUNNING = Verdict(TurnStatus.RUNNING)


class _Watch(Watch):
    """A watch that is told what it has heard."""

    def __init__(self, clock: HandClock, *running: Running, text_chars: int | None = None) -> None:
        super().__init__("ses_1", clock)
        self.text_chars = text_chars
        self._given = list(running)

    @property
    def running(self) -> list[Running]:
        return self._given


@dataclass
class _Kept:
    """What is read of a keeper."""

    clock: HandClock
    verdict: Verdict = _RUNNING
    watch: Watch | None = None
    trouble: Trouble | None = None
    stop_reason: StopReason | None = None
    title: str | None = None
    age_s: float = 65.0
    session: Session = field(init=False)
    turn: Turn = field(init=False)

    def __post_init__(self) -> None:
        session = Session("ses_1", "local", "i", "/repo", Phase.ACTIVE, 2, START, START)
        self.session = replace(session, title=self.title)
        turn = Turn("ses_1", 2, "msg_1", None, Submission.RECORDED, START, START)
        self.turn = replace(turn, stop_reason=self.stop_reason)

    @property
    def elapsed_s(self) -> float:
        return self.age_s

    @property
    def keeper(self) -> Keeper:
        return cast("Keeper", self)


@pytest.fixture
def clock() -> HandClock:
    clock = HandClock()
    clock.seconds = 100
    return clock


def _bash(about: str = "Run the tests", since: float = 88, *, is_child: bool = False) -> Running:
    return Running("bash", about, since, is_child)


def _line(kept: _Kept) -> str:
    return describe(kept.keeper, kept.clock)


_AGE = " · turn 2 for 1 min 5 s"


@pytest.mark.parametrize(
    ("running", "line"),
    [
        pytest.param([_bash()], "bash: Run the tests (running 12 s)", id="one"),
        pytest.param(
            [_bash("old"), _bash()], "bash: Run the tests (running 12 s), 1 more", id="two"
        ),
        pytest.param(
            [Running("edit", "/repo/src/app.py", 100, is_child=False)],
            "edit: src/app.py (running 0 s)",
            id="file",
        ),
        pytest.param([_bash("")], "bash (running 12 s)", id="nothing-told"),
        pytest.param(
            [Running("task", "explore: find uses", 40, is_child=False)],
            "sub-agent explore: find uses (running 1 min 0 s)",
            id="sub-agent",
        ),
        pytest.param(
            [Running("task", "explore: find uses", 40, is_child=False), _bash(is_child=True)],
            "sub-agent explore: find uses > bash: Run the tests (running 1 min 0 s)",
            id="tool-of-a-sub-agent",
        ),
    ],
)
def test_a_running_tool_is_told(clock: HandClock, running: list[Running], line: str) -> None:
    assert _line(_Kept(clock, watch=_Watch(clock, *running))) == line + _AGE


def test_writing_and_thinking_are_told_apart(clock: HandClock) -> None:
    writing = _Kept(clock, watch=_Watch(clock, text_chars=1234))
    assert _line(writing) == "writing its answer (1,234 characters so far)" + _AGE
    thinking = _Kept(clock, watch=_Watch(clock))
    clock.seconds += 35
    assert _line(thinking) == "thinking (35 s)" + _AGE


def test_the_tool_calls_so_far_are_counted(clock: HandClock) -> None:
    calls = (ToolCall("bash", "completed", None, None),) * 3
    watch = _Watch(clock)
    assert _line(_Kept(clock, replace(_RUNNING, tool_calls=calls[:1]), watch)).endswith(
        f"{_AGE}, 1 tool call"
    )
    watch.call_count = 2
    assert _line(_Kept(clock, replace(_RUNNING, tool_calls=calls[:1]), watch)).endswith(
        f"{_AGE}, 2 tool calls"
    )
    assert _line(_Kept(clock, replace(_RUNNING, tool_calls=calls), watch)).endswith(
        f"{_AGE}, 3 tool calls"
    )


def test_a_retry_is_told_with_its_attempt_and_when(clock: HandClock) -> None:
    status = RemoteStatus(
        type="retry", attempt=3, message="over\nloaded", next=START + timedelta(seconds=108)
    )
    kept = _Kept(clock, replace(_RUNNING, retry=status), _Watch(clock, _bash()))
    said = "the provider is being retried (attempt 3, again in 8 s): over loaded"
    assert _line(kept) == said + _AGE
    bare = _Kept(clock, replace(_RUNNING, retry=RemoteStatus(type="retry")))
    assert _line(bare) == "the provider is being retried: it gave no reason" + _AGE


def _permission() -> PermissionRequest:
    return PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=["npm test", "ls"]
    )


def test_what_is_waited_for_is_told_and_for_how_much_longer(clock: HandClock) -> None:
    times = {"per_1": AskTimes(START, START + timedelta(seconds=670))}
    waiting = Verdict(TurnStatus.WAITING, pending=(_permission(), _permission()), ask_times=times)
    line = _line(_Kept(clock, waiting, _Watch(clock, _bash())))
    said = "waiting for permission for bash npm test, ls (9 min 30 s left), and 1 more"
    assert line == said + _AGE
    question = QuestionRequest.model_validate(
        {"id": "que_1", "sessionID": "ses_1", "questions": [{"question": "Which\none?"}]}
    )
    assert describe_ask(question) == "an answer: Which one?"
    assert describe_ask(QuestionRequest(id="que_1", session_id="ses_1")) == "an answer:"


def test_an_outage_and_a_stop_come_before_what_was_going_on(clock: HandClock) -> None:
    trouble = Trouble(ValueError("refused"), START + timedelta(seconds=95), START)
    kept = _Kept(clock, _RUNNING, _Watch(clock, _bash()), trouble)
    assert _line(kept) == "OpenCode cannot be asked (5 s): refused" + _AGE
    for reason in StopReason:
        stopping = _Kept(clock, _RUNNING, _Watch(clock, _bash()), stop_reason=reason)
        assert _line(stopping).startswith("stopping: ")


def test_a_turn_that_nobody_hears_just_runs(clock: HandClock) -> None:
    assert _line(_Kept(clock)) == "running" + _AGE


def test_a_long_path_keeps_its_end_and_a_long_title_its_beginning(clock: HandClock) -> None:
    deep = "/repo/" + "folder/" * 60 + "app.py"
    line = _line(_Kept(clock, watch=_Watch(clock, Running("edit", deep, 88, is_child=False))))
    assert line.startswith("edit: …")
    assert line.endswith(f"folder/app.py (running 12 s){_AGE}")
    assert len(line) == 200
    line = _line(_Kept(clock, watch=_Watch(clock, _bash("word " * 60))))
    assert line.startswith("bash: word word")
    assert line.endswith(f"… (running 12 s){_AGE}")
    assert len(line) == 200


def test_several_turns_are_told_as_far_as_there_is_room(clock: HandClock) -> None:
    one = _Kept(clock, watch=_Watch(clock, _bash()), title="Parser")
    two = _Kept(clock, watch=_Watch(clock, text_chars=5))
    line = describe_several("1 of 3 have news", [one.keeper, two.keeper], clock)
    assert line == (
        "1 of 3 have news; Parser: bash: Run the tests (running 12 s);"
        " ses_1: writing its answer (5 characters so far)"
    )
    many = describe_several("0 of 9 have news", [one.keeper] * 9, clock)
    assert many.startswith("0 of 9 have news; Parser: bash: Run the tests (running 12 s); Parser: ")
    assert many.endswith("; and 6 more")
    assert len(many) <= 200
    assert describe_several("2 of 2 have news", [], clock) == "2 of 2 have news"


_texts = st.text(max_size=400) | st.sampled_from(["/a" * 300, "x" * 900, "\n" * 500])
_runs = st.builds(
    Running,
    tool=st.sampled_from(["bash", "task"]) | _texts,
    about=_texts,
    since=st.floats(min_value=0, max_value=100),
    is_child=st.booleans(),
)


def _ran(tool: str, about: str = "", *, is_child: bool = False) -> Running:
    return Running(tool=tool, about=about, since=0, is_child=is_child)


#: as little room as there is for one of several
@example(
    running=[*[_ran("bash")] * 3, _ran("bash", "0" * 10, is_child=True), _ran("task")],
    said="",
    title="0",
    age_s=0.0,
    status=TurnStatus.RUNNING,
    retries=False,
)
@given(
    running=st.lists(_runs, max_size=5),
    said=_texts,
    title=_texts,
    age_s=st.sampled_from([0.0, 59.7, 10**7]),
    status=st.sampled_from([TurnStatus.RUNNING, TurnStatus.WAITING]),
    retries=st.booleans(),
)
def test_any_line_is_one_line_of_at_most_200_characters(  # noqa: PLR0913, PLR0917
    running: list[Running],
    said: str,
    title: str,
    age_s: float,
    status: TurnStatus,
    retries: bool,  # noqa: FBT001
) -> None:
    clock = HandClock()
    clock.seconds = 100
    ask = PermissionRequest(id="p", session_id="s", permission=said, patterns=[said])
    verdict = Verdict(
        status,
        pending=(ask,) if status is TurnStatus.WAITING else (),
        retry=RemoteStatus(type="retry", message=said) if retries else None,
    )
    # a watch makes one line of what it hears
    heard = [replace(call, about=" ".join(call.about.split())) for call in running]
    kept = _Kept(clock, verdict, _Watch(clock, *heard), title=title, age_s=age_s)
    lines = [_line(kept), describe_several("3 of 9 have news", [kept.keeper] * 6, clock)]
    for line in lines:
        assert len(line) <= 200
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (7325, "2 h 2 min"),
    ],
)
def test_a_time_is_told_as_people_say_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said
