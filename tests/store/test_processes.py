"""Several processes on one file: all get in, one wins, and a killed one leaves no harm."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.store.migrate import APPLICATION_ID
from opencode_mcp.store.store import Store
from tests.store.children import child, children
from tests.store.make import ROOMY, a_turn, tracked

if TYPE_CHECKING:
    from pathlib import Path

FRESH_S = 10.0  # case B37


async def test_six_processes_open_one_fresh_file_at_once_every_round(tmp_path: Path) -> None:
    """Case B37: half of them died with 'locked'."""
    async with children(tmp_path, 6) as six:
        for number in range(20):
            folder = tmp_path / f"round{number}" / "state"
            for one in six:
                one.tell("open_once", folder=str(folder))
            answers = await asyncio.gather(*(one.answer(FRESH_S) for one in six))
            assert isinstance(answers[0], str), answers
            assert answers == [answers[0]] * 6  # one file, one row
            with closing(sqlite3.connect(folder / "tracking.db")) as file:
                assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
                assert file.execute("PRAGMA user_version").fetchone() == (6,)
                assert file.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
                assert file.execute("SELECT count(*) FROM instances").fetchone() == (1,)


async def test_of_two_processes_one_wins_each_of_500_turns(path: Path) -> None:
    """Case 36: between processes."""
    async with Store.open(path) as store:
        await tracked(store)
        async with children(path, 2) as both:
            for one in both:
                one.tell("begin_turns", session_id="ses_1", last=500, starters=2)
            answers = [await one.answer() for one in both]
        session = await store.resolve("ses_1")
        turns = [await store.turn("ses_1", number) for number in range(1, 502)]
    won: list[int] = []
    lost = 0
    for answer in answers:
        assert isinstance(answer, dict)
        assert answer["won"], "it was over before the other began"
        won += answer["won"]
        lost += answer["lost"]
    assert sorted(won) == list(range(1, 501))
    assert lost > 0, "they never met"
    assert session
    assert (session.turn_count, session.version) == (500, 501)
    assert turns == [*(a_turn(number=number) for number in range(1, 501)), None]


async def test_of_a_delete_and_an_archive_at_once_the_delete_stays(path: Path) -> None:
    names = [f"ses_{number}" for number in range(50)]
    async with Store.open(path) as store:
        for name in names:
            await tracked(store, name)
        async with children(path, 2) as (deleter, archiver):
            deleter.tell("begin_ends", session_ids=names, action="delete")
            archiver.tell("begin_ends", session_ids=names, action="archive")
            deleted, archived = await deleter.answer(), await archiver.answer()
        for name in names:
            session = await store.resolve(name)
            assert session
            assert session.ending
            assert session.ending.action == "delete"
    assert deleted == ["delete"] * 50
    assert isinstance(archived, list)
    assert set(archived) <= {"archive", "EndConflictError"}


async def test_of_two_processes_one_takes_each_lease(path: Path) -> None:
    async with Store.open(path) as store, children(path, 2) as (one, two):
        for round_number in range(20):
            names = [f"ses_{round_number}_{number:02}" for number in range(50)]
            for name in names:
                await tracked(store, name)
            # From opposite ends, so that both have some and they meet in the middle.
            one.tell("take_leases", session_ids=names, holder="one")
            two.tell("take_leases", session_ids=names[::-1], holder="two")
            first, second = await one.answer(), await two.answer()
            assert isinstance(first, list)
            assert isinstance(second, list)
            assert sorted(first + second) == names
            if first and second:  # else one was done before the other began: no race
                break
        else:
            pytest.fail("they never met")


@pytest.mark.parametrize(
    ("options", "rounds"),
    [pytest.param([], 5, id="wal"), pytest.param(["--no-shared-memory"], 2, id="rollback-journal")],
)
async def test_what_a_killed_process_reported_as_recorded_is_there(
    path: Path, options: list[str], rounds: int
) -> None:
    async with Store.open(path) as store:
        await tracked(store)
    for _ in range(rounds):
        async with child(path, *options) as writer:
            writer.tell("write_for_ever", session_id="ses_1")
            for _ in range(20):
                recorded = await writer.answer()
            writer.process.kill()
            assert writer.process.stdout
            rest = (await writer.process.stdout.read()).split(b"\n")
            recorded = max(
                [recorded, *(int(line) for line in rest[:-1])], key=lambda n: int(str(n))
            )
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        async with Store.open(path) as store:
            session = await store.resolve("ses_1")
            assert session
            assert isinstance(recorded, int)
            assert session.turn_count in {recorded, recorded + 1}
            assert await store.turn("ses_1", session.turn_count)
            assert await store.turn("ses_1", session.turn_count + 1) is None
            await store.begin_turn(session, a_turn(number=session.turn_count + 1), capacity=ROOMY)


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        pytest.param(0o555, ".", id="folder-read-only"),
        pytest.param(0o000, ".", id="folder-closed"),
        pytest.param(0o444, "tracking.db", id="file-read-only"),
        pytest.param(0o000, "tracking.db", id="file-closed"),
    ],
)
async def test_what_may_not_be_written_is_refused_in_one_line(
    tmp_path: Path, mode: int, what: str
) -> None:
    """Case B39: path, user id and remedy, no trace. Root, too, is bound by the bits here."""
    folder = tmp_path / "state"
    async with Store.open(folder / "tracking.db"):
        pass
    changed = folder / what
    before = changed.stat().st_mode
    changed.chmod(mode)
    try:
        async with child(tmp_path, "--unprivileged") as visitor:
            answer = await visitor.ask("open_once", folder=str(folder))
    finally:
        changed.chmod(before)
    assert isinstance(answer, dict), answer
    assert answer["error"] == "StoreUnusableError"
    text = answer["text"]
    for part in (str(folder), "user id", "make the file and its folder writable"):
        assert part in text
    assert "\n" not in text
