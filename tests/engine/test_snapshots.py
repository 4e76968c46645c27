"""What is kept for the next page, and for how long: within a bound, and never instead of it."""

from __future__ import annotations

from opencode_mcp.engine.snapshots import Snapshots, snapshot_id


def test_those_used_last_stay_within_the_bound() -> None:
    kept: Snapshots[str] = Snapshots(max_chars=10)
    kept.keep(("a",), "aaaa", 4)
    kept.keep(("b",), "bbbb", 4)
    assert kept.find(("a",)) == "aaaa"
    kept.keep(("c",), "cccc", 4)
    assert kept.find(("b",)) is None, "it was not used for the longest time"
    assert (kept.find(("a",)), kept.find(("c",))) == ("aaaa", "cccc")


def test_what_is_beyond_the_bound_is_not_kept_and_takes_nothing_along() -> None:
    kept: Snapshots[str] = Snapshots(max_chars=10)
    kept.keep(("a",), "aaaa", 4)
    kept.keep(("large",), "l" * 11, 11)
    assert (kept.find(("large",)), kept.find(("a",))) == (None, "aaaa")


def test_even_nothing_takes_room() -> None:
    kept: Snapshots[str] = Snapshots(max_chars=3)
    for name in "abcd":
        kept.keep((name,), "", 0)
    assert [kept.find((name,)) for name in "abcd"] == [None, "", "", ""]


def test_an_id_is_that_of_its_content() -> None:
    assert snapshot_id("é\ud800") == snapshot_id("é\ud800")
    assert snapshot_id("a") != snapshot_id("b")
