"""What is told of a provider's fault: the numbers a program needs, and never headers or bodies."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.engine.make import assistant, error, judged, user

if TYPE_CHECKING:
    from opencode_mcp.engine.failures import Failure

#: when the message with the fault was completed
_AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def _failure(name: str = "APIError", **data: object) -> Failure:
    at_ms = int(_AT.timestamp() * 1000)
    times = {"created": at_ms - 500, "completed": at_ms}
    failed = assistant(error=error(name, **data), finish=None, time=times)
    failure = judged(user(), failed).failure
    assert failure is not None
    return failure


def test_a_providers_error_keeps_its_numbers_and_nothing_else() -> None:
    failure = _failure(
        statusCode=429,
        isRetryable=True,
        responseBody="secret body",
        responseHeaders={"set-cookie": "secret cookie", "Retry-After": "7"},
        metadata={"url": "http://secret"},
    )
    assert (failure.name, failure.condition) == ("UPSTREAM_ERROR", "APIError")
    assert (failure.status_code, failure.retryable, failure.retry_after_s) == (429, True, 7.0)
    assert failure.message == "it broke"
    assert "secret" not in repr(failure)


def test_what_is_not_passed_on_is_not_even_kept() -> None:
    failed = assistant(
        error=error("APIError", responseBody="secret", responseHeaders={"x-key": "secret"})
    )
    assert "secret" not in repr(failed)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "30"}, 30.0, id="seconds"),
        pytest.param({"retry-after": "1.5"}, 1.5, id="fraction"),
        pytest.param({"Retry-After-Ms": "1500", "retry-after": "9"}, 1.5, id="milliseconds-first"),
        pytest.param({"retry-after": "Sun, 29 Nov 2026 12:01:00 GMT"}, 60.0, id="date"),
        pytest.param(
            {
                "retry-after": "Sun, 29 Nov 2026 12:01:00 GMT",
                "date": "Sun, 29 Nov 2026 12:00:50 GMT",
            },
            10.0,
            id="date-by-the-providers-clock",
        ),
        pytest.param({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0.0, id="date-gone-by"),
        pytest.param({"retry-after": "Sun, 29 Nov 2026 12:01:00 -0000"}, None, id="no-zone"),
        pytest.param({"retry-after": "soon"}, None, id="a-word"),
        pytest.param({"retry-after": "-3"}, None, id="negative"),
        pytest.param({"retry-after": "inf"}, None, id="endless"),
        pytest.param({"retry-after": ["7"]}, None, id="not-text"),
        pytest.param({}, None, id="not-said"),
        pytest.param("none", None, id="no-headers"),
    ],
)
def test_the_providers_wait_is_told_in_seconds(headers: object, seconds: float | None) -> None:
    assert _failure(statusCode=429, responseHeaders=headers).retry_after_s == seconds


@pytest.mark.parametrize("code", ["429", True, None, 4.5])
def test_a_status_that_is_no_number_is_left_out(code: object) -> None:
    assert _failure(statusCode=code).status_code is None


def test_a_long_message_is_cut() -> None:
    assert len(_failure(message="x" * 100_000).message) == 2000


@pytest.mark.parametrize(
    ("name", "said", "word"),
    [
        pytest.param(
            "UnknownError", "JSON parsing failed: Text: secret stream", "malformed", id="malformed"
        ),
        pytest.param("APIError", " <!DOCTYPE html><b>secret", "HTML page", id="html"),
        pytest.param("APIError", "<html>secret", "HTML page", id="bare-html"),
    ],
)
def test_a_body_inside_a_message_stays_behind(name: str, said: str, word: str) -> None:
    failure = _failure(name, message=said)
    assert word in failure.message
    assert "secret" not in failure.message


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("ProviderAuthError", "log in"),
        ("ContextOverflowError", "new session"),
        ("MessageOutputLengthError", "output limit"),
    ],
)
def test_a_fault_that_the_caller_can_mend_says_how(name: str, word: str) -> None:
    assert word in _failure(name).message


def test_an_error_without_a_text_is_told_by_its_name() -> None:
    assert _failure("SomethingNewError", message="").message == "SomethingNewError"
