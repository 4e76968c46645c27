"""What a turn came to: the table of cases, each from evidence alone."""

from __future__ import annotations

import pytest

from opencode_mcp.engine.outcome import Evidence, TurnStatus, Verdict, judge
from opencode_mcp.opencode.models import Message, PermissionRequest, RemoteStatus
from opencode_mcp.records import StopReason

_ASK = PermissionRequest(id="per_1", session_id="ses_1", permission="bash", patterns=["ls"])
_BUSY = RemoteStatus(type="busy")


def _user(**more: object) -> Message:
    info = {"id": "msg_0", "sessionID": "ses_1", "role": "user", "time": {"created": 1}, **more}
    return Message.model_validate({"info": info, "parts": [_text("the prompt")]})


def _assistant(
    *parts: dict[str, object], finish: str | None = "stop", completed: bool = True, **more: object
) -> Message:
    time = {"created": 2, "completed": 3} if completed else {"created": 2}
    info = {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": time,
        "finish": finish,
        "providerID": "p",
        "modelID": "m",
        **more,
    }
    return Message.model_validate({"info": info, "parts": list(parts)})


def _text(text: str, **more: object) -> dict[str, object]:
    return {"id": "prt_1", "type": "text", "text": text, **more}


def _tool(status: str, **more: object) -> dict[str, object]:
    return {"id": "prt_2", "type": "tool", "tool": "bash", "state": {"status": status, **more}}


def _error(name: str, **data: object) -> dict[str, object]:
    return {"name": name, "data": {"message": "it broke", **data}}


_ABORTED = _error("MessageAbortedError")


def _judged(
    *messages: Message,
    status: RemoteStatus | None = None,
    pending: tuple[PermissionRequest, ...] = (),
    stop: StopReason | None = None,
    settled: bool = True,
) -> Verdict:
    return judge(Evidence(messages, status, pending, stop, settled))


@pytest.mark.parametrize(
    ("verdict", "status", "error"),
    [
        pytest.param(_judged(_user(), _assistant(_text("hi"))), "completed", None, id="stop"),
        pytest.param(
            _judged(_user(), _assistant(_text("hi"), finish="length")),
            "completed",
            None,
            id="length",
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("hi"), finish="content-filter")),
            "failed",
            "UPSTREAM_ERROR",
            id="content-filter",
        ),
        pytest.param(_judged(_user(), _assistant()), "failed", "EMPTY_RESPONSE", id="empty"),
        pytest.param(
            _judged(_user(), _assistant(_text(" \n\t"))), "failed", "EMPTY_RESPONSE", id="blank"
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("note", synthetic=True))),
            "failed",
            "EMPTY_RESPONSE",
            id="only-opencodes-own-text",
        ),
        pytest.param(
            _judged(_user(), _assistant(_tool("completed"), finish="tool-calls"), _assistant()),
            "completed",
            None,
            id="no-text-but-effects",
        ),
        pytest.param(
            _judged(_user(), _assistant(_tool("error"), finish="tool-calls")),
            "failed",
            "TURN_INCOMPLETE",
            id="tool-calls-without-an-end",
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("hi"), finish="other")),
            "completed",
            None,
            id="non-standard-finish",
        ),
        pytest.param(
            _judged(_user(), _assistant(error=_error("APIError", statusCode=401), finish=None)),
            "failed",
            "UPSTREAM_ERROR",
            id="provider-error",
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("par"), error=_ABORTED, finish=None)),
            "cancelled",
            None,
            id="aborted-by-somebody",
        ),
        pytest.param(
            _judged(_user(), _assistant(error=_ABORTED, finish=None), stop=StopReason.TIMEOUT),
            "timeout",
            "TURN_INCOMPLETE",
            id="aborted-at-its-limit",
        ),
        pytest.param(
            _judged(_user(), _assistant(finish=None), stop=StopReason.CANCEL),
            "cancelled",
            None,
            id="aborted-in-a-retry-leaves-no-trace",
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("all of it")), stop=StopReason.CANCEL),
            "completed",
            None,
            id="finished-before-the-abort",
        ),
        pytest.param(
            _judged(_user(), _assistant(_text(""), finish=None, completed=False)),
            "failed",
            "TURN_INCOMPLETE",
            id="killed-server",
        ),
        pytest.param(_judged(_user()), "failed", "TURN_INCOMPLETE", id="wrong-model"),
        pytest.param(_judged(), "failed", "TURN_INCOMPLETE", id="prompt-never-seen"),
        pytest.param(_judged(settled=False), "running", None, id="prompt-not-seen-yet"),
        pytest.param(_judged(_user(), settled=False), "running", None, id="not-begun-yet"),
        pytest.param(_judged(_user(), status=_BUSY), "running", None, id="busy"),
        pytest.param(
            _judged(_user(), _assistant(_text("hi")), status=_BUSY),
            "running",
            None,
            id="busy-after-a-final-message",
        ),
        pytest.param(
            _judged(_user(), status=_BUSY, pending=(_ASK,)),
            "waiting_for_approval",
            None,
            id="asks",
        ),
        pytest.param(
            _judged(_user(), status=_BUSY, stop=StopReason.CANCEL), "stopping", None, id="stopping"
        ),
        pytest.param(
            _judged(_user(), _assistant(_text("a summary"), summary=True)),
            "failed",
            "TURN_INCOMPLETE",
            id="a-compaction-is-not-an-answer",
        ),
    ],
)
def test_a_turn_is_judged_by_its_evidence(verdict: Verdict, status: str, error: str | None) -> None:
    assert verdict.status == status
    assert (verdict.failure.name if verdict.failure else None) == error


def test_the_answer_is_the_last_messages_text() -> None:
    verdict = _judged(
        _user(),
        _assistant(_text("I will look"), _tool("completed"), finish="tool-calls"),
        _assistant(_text("It is 4."), _text("Really.")),
    )
    assert verdict.answer == "It is 4.\n\nReally."


def test_partial_text_is_kept_when_a_turn_is_cut() -> None:
    verdict = _judged(_user(), _assistant(_text("half an ans"), error=_ABORTED, finish=None))
    assert verdict.answer == "half an ans"


@pytest.mark.parametrize("status", ["pending", "running"])
def test_no_tool_call_runs_after_the_end(status: str) -> None:
    verdict = _judged(_user(), _assistant(_tool(status), finish=None, completed=False))
    assert [call.status for call in verdict.tool_calls] == ["cancelled"]


def test_a_running_tool_call_is_shown_as_running_while_the_turn_runs() -> None:
    verdict = _judged(
        _user(), _assistant(_tool("running"), finish=None, completed=False), status=_BUSY
    )
    assert [call.status for call in verdict.tool_calls] == ["running"]


def test_a_cut_answer_is_warned_of() -> None:
    verdict = _judged(_user(), _assistant(_text("long"), finish="length"))
    assert [code for code, _ in verdict.warnings] == ["TRUNCATED"]


def test_a_providers_error_keeps_its_status_and_not_its_body() -> None:
    error = _error("APIError", statusCode=429, isRetryable=True, responseBody="secret")
    failure = _judged(_user(), _assistant(error=error, finish=None)).failure
    assert failure is not None
    assert (failure.status_code, failure.retryable, failure.message) == (429, True, "it broke")
    assert "secret" not in repr(failure)


def test_a_retry_is_told() -> None:
    retry = RemoteStatus(type="retry", attempt=2, message="slow down")
    verdict = _judged(_user(), status=retry)
    assert verdict.retry == retry
    assert verdict.status is TurnStatus.RUNNING


def test_tokens_and_cost_are_those_of_all_steps() -> None:
    tokens = {"input": 3, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 5}}
    step = _assistant(_tool("completed"), finish="tool-calls", tokens=tokens, cost=0.5)
    last = _assistant(_text("done"), tokens=tokens, cost=0.25)
    usage = _judged(_user(), step, last).usage
    assert (usage.input, usage.output, usage.cache_write, usage.cost) == (6, 4, 10, 0.75)


def test_changed_files_come_from_the_summary_of_the_prompt() -> None:
    summary = {"diffs": [{"file": "a.py"}, {"file": "b.py"}, {"file": "a.py"}]}
    verdict = _judged(_user(summary=summary), _assistant(_text("done")))
    assert verdict.files_changed == ("a.py", "b.py")
