"""The event stream, from bytes to events."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.opencode.sse import SseParser, read_event
from tests.opencode.fake_server import frame

# --- bytes to frames ---

_data = st.binary(max_size=20).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b""))
_lines = st.one_of(
    _data.map(lambda data: b"data: " + data),
    _data.map(lambda data: b"data:" + data),
    _data.map(lambda data: b": " + data),
    st.sampled_from([b"", b"", b"event: x", b"id: 1", b"data", b"retry: 5", b"nonsense"]),
)
_streams = st.lists(
    st.tuples(_lines, st.sampled_from([b"\n", b"\r\n", b"\r"])).map(b"".join), max_size=30
).map(b"".join)


@given(stream=_streams, cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=20))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    whole, cut = SseParser(max_bytes=60), SseParser(max_bytes=60)
    ends = sorted(min(end, len(stream)) for end in cuts)
    chunks = [stream[a:b] for a, b in zip([0, *ends], [*ends, len(stream)], strict=True)]
    assert [one for chunk in chunks for one in cut.feed(chunk)] == whole.feed(stream)
    assert cut.skipped_count == whole.skipped_count


@given(events=st.lists(_data.filter(bool), max_size=10), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_goes_in_comes_out(events: list[bytes], end: str) -> None:
    newline = end.encode()
    stream = b"".join(b"data: " + one + newline + newline for one in events)
    assert SseParser().feed(stream) == events


def test_several_data_lines_are_one_event_and_comments_are_none() -> None:
    assert SseParser().feed(b": hi\n\ndata: a\ndata:b\nid: 7\n\n:x\n\ndata: c") == [b"a\nb"]


def test_an_oversize_event_is_skipped_and_counted_and_the_next_one_is_read() -> None:
    parser = SseParser(max_bytes=100)
    frames = [one for _ in range(50) for one in parser.feed(b"data: " + b"x" * 50)]
    frames += parser.feed(b"\n\ndata: next\n\n")
    assert (frames, parser.skipped_count) == ([b"next"], 1)


def test_an_event_of_many_small_lines_has_the_same_limit() -> None:
    parser = SseParser(max_bytes=100)
    frames = [one for _ in range(50) for one in parser.feed(b"data: 1234567890\n")]
    assert (frames, parser.feed(b"\n"), parser.skipped_count) == ([], [], 1)


# --- frames to events ---


def data_of(chunk: bytes) -> bytes:
    return chunk.removeprefix(b"data: ").rstrip()


def test_an_event_is_told_from_its_beginning() -> None:
    event = read_event(data_of(frame("session.idle", sessionID="ses_1")))
    assert event is not None
    assert (event.kind, event.session_id) == ("session.idle", "ses_1")


@pytest.mark.parametrize(
    "text",
    [
        # the id comes first in a request, and last in an event without a session (1.18.33)
        '{"payload":{"id":"e","type":"x.y","properties":{"id":"per_1","sessionID":"ses_1"}}}',
        '{"payload":{"properties":{"sessionID":"ses_1"},"id":"e","type":"x.y"}}',
        '{"payload":{"type":"x.y","properties":{"info":{"sessionID":"ses_1"}}}}',
        '{"payload":{"type":"x.y","properties":{"part":{"sessionID":"ses_1"}}}}',
        '{ "directory" : "/p", "payload" : { "type":"x.y","properties":{"sessionID":"ses_1"}}}',
        '{"directory":"/a\\"b\\\\","payload":{"type":"x.y","properties":{"sessionID":"ses_1"}}}',
        '{"new":1,"payload":{"type":"x.y","properties":{"sessionID":"ses_1"}}}',
    ],
)
def test_an_event_of_another_order_or_spelling_is_understood(text: str) -> None:
    event = read_event(text.encode())
    assert event is not None
    assert (event.kind, event.session_id) == ("x.y", "ses_1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '{"payload":7}',
        '{"payload":{}}',
        '{"payload":{"type":7}}',
        "\x00",
    ],
)
def test_what_is_no_event_is_none(text: str) -> None:
    assert read_event(text.encode()) is None


def test_a_sync_copy_is_of_no_session() -> None:
    text = '{"directory":"/p","payload":{"type":"sync","syncEvent":{"data":{"sessionID":"ses_1"}}}}'
    event = read_event(text.encode())
    assert event is not None
    assert (event.kind, event.session_id) == ("sync", None)


@given(hostile=st.text(), name=st.text())
def test_nothing_inside_a_value_poses_as_kind_or_session(hostile: str, name: str) -> None:
    posing = '","payload":{"type":"sync","properties":{"sessionID":"ses_2"'
    payload = {
        "id": "e",
        "type": "session.updated",
        "properties": {
            "sessionID": "ses_1",
            "info": {"title": hostile, "metadata": {name: {"payload": {"type": "sync"}}}},
        },
    }
    event = read_event(
        json.dumps(
            {"directory": hostile + posing, "payload": payload}, separators=(",", ":")
        ).encode()
    )
    assert event is not None
    assert (event.kind, event.session_id) == ("session.updated", "ses_1")


@given(raw=st.binary(max_size=200))
def test_no_bytes_break_the_reading(raw: bytes) -> None:
    read_event(raw)
    read_event(b'{"payload":{"type":"message.updated","properties":' + raw)
