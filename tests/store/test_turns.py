"""Turns: one winner per number, and evidence that stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import StaleSessionError, StoreError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import EndAction, StopReason, Submission
from tests.store.make import ROOMY, a_session, a_turn, ended, tracked

if TYPE_CHECKING:
    from opencode_mcp.store.store import Store


async def test_a_turn_is_recorded_and_given_options_replace_the_stored_ones(store: Store) -> None:
    session = await tracked(store)
    turn = replace(a_turn(), boundary="msg_0")
    saved = await store.begin_turn(
        session,
        turn,
        model="test/other",
        agent="plan",
        developer_instructions="Be long.",
        capacity=ROOMY,
    )
    assert saved == replace(
        session,
        turn_count=1,
        version=2,
        updated_at=saved.updated_at,
        model="test/other",
        agent="plan",
        developer_instructions="Be long.",
    )
    assert await store.resolve("ses_1") == saved
    assert await store.turn("ses_1", 1) == turn
    assert await store.turn("ses_1", 2) is None


async def test_options_that_are_not_given_stay(store: Store) -> None:
    session = await tracked(store)
    first = await store.begin_turn(session, a_turn(), variant="high", capacity=ROOMY)
    second = await store.begin_turn(first, a_turn(number=2), capacity=ROOMY)
    assert (second.model, second.variant, second.turn_count) == ("test/model", "high", 2)


async def test_the_second_of_two_that_begin_one_turn_is_stale(store: Store) -> None:
    session = await tracked(store)
    await store.begin_turn(session, a_turn(), capacity=ROOMY)
    with pytest.raises(StaleSessionError):
        await store.begin_turn(session, replace(a_turn(), message_id="msg_other"), capacity=ROOMY)
    assert await store.turn("ses_1", 1) == a_turn()


@pytest.mark.parametrize("phase", [Phase.QUARANTINED, Phase.ENDING])
async def test_no_turn_begins_in_a_session_that_is_not_active(store: Store, phase: Phase) -> None:
    session = await tracked(store)
    if phase is Phase.ENDING:
        changed = await store.begin_end("ses_1", None, EndAction.DELETE)
    else:
        changed = await store.move(session, phase)
    for claimed in (changed, session, replace(session, version=changed.version)):
        with pytest.raises(StaleSessionError):
            await store.begin_turn(claimed, a_turn(), capacity=ROOMY)
    assert await store.turn("ses_1", 1) is None


async def test_a_turn_out_of_order_is_refused(store: Store) -> None:
    session = await tracked(store)
    for turn in (a_turn(number=2), a_turn("ses_2")):
        with pytest.raises(ValueError, match="not the next turn"):
            await store.begin_turn(session, turn, capacity=ROOMY)


async def test_a_message_id_used_twice_leaves_the_session_as_it_was(store: Store) -> None:
    first = await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    with pytest.raises(StoreError):
        await store.begin_turn(first, replace(a_turn(number=2), message_id="msg_1"), capacity=ROOMY)
    assert await store.resolve("ses_1") == first


async def test_a_refused_prompt_is_recorded(store: Store) -> None:
    await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    refused = await store.refuse_turn(a_turn())
    assert refused.finished_at is not None
    assert refused == replace(
        a_turn(), submission=Submission.REFUSED, finished_at=refused.finished_at
    )
    assert await store.turn("ses_1", 1) == refused


async def test_open_turns_are_those_that_nobody_saw_to_be_over(store: Store) -> None:
    """Ours: those first that are due first; what is over never opens again."""
    session = await tracked(store)
    later = replace(a_turn(), deadline_at=a_turn().deadline_at + timedelta(hours=1))
    await store.begin_turn(session, later, capacity=ROOMY)
    other = await tracked(store, "ses_2")
    await store.begin_turn(other, a_turn("ses_2"), capacity=ROOMY)
    assert await store.open_turns() == [a_turn("ses_2"), later]
    over = await store.finish_turn(later)
    assert over.finished_at is not None
    assert await store.finish_turn(later) == over
    held = await store.hold_turn(a_turn("ses_2"), "me")
    assert await store.open_turns() == [held]
    assert held.holder == "me"


async def test_a_turn_is_found_by_its_prompt(store: Store) -> None:
    await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    assert await store.turn_by_message("ses_1", "msg_1") == a_turn()
    assert await store.turn_by_message("ses_1", "msg_2") is None
    assert await store.turn_by_message("ses_2", "msg_1") is None


async def test_a_turn_keeps_the_schema_of_its_answer_whatever_is_noted_of_it(store: Store) -> None:
    turn = replace(a_turn(), output_schema='{"title":"Zoë"}')
    await store.begin_turn(await tracked(store), turn, capacity=ROOMY)
    assert await store.turn("ses_1", 1) == turn
    assert (await store.hold_turn(turn, "me")).output_schema == turn.output_schema
    assert [one.output_schema for one in await store.open_turns()] == [turn.output_schema]


async def test_the_first_stop_reason_stays(store: Store) -> None:
    await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    stopped = await store.set_stop_reason(a_turn(), StopReason.TIMEOUT)
    assert stopped == replace(a_turn(), stop_reason=StopReason.TIMEOUT)
    assert await store.set_stop_reason(a_turn(), StopReason.CANCEL) == stopped


async def test_a_turn_that_was_seen_to_be_over_keeps_its_own_end(store: Store) -> None:
    """Case B03: what is finished is never called cancelled later."""
    await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    over = await store.finish_turn(a_turn())
    assert await store.set_stop_reason(a_turn(), StopReason.CANCEL) == over
    assert over.stop_reason is None


async def test_what_is_noted_of_a_turn_does_not_make_its_session_stale(store: Store) -> None:
    saved = await store.begin_turn(await tracked(store), a_turn(), capacity=ROOMY)
    await store.refuse_turn(a_turn())
    await store.set_stop_reason(a_turn(), StopReason.END)
    assert await store.resolve("ses_1") == saved


async def test_a_turn_of_an_ended_session_is_gone(store: Store) -> None:
    await ended(store)
    assert await store.turn(a_session().id, 1) is None
    with pytest.raises(StaleSessionError):
        await store.refuse_turn(a_turn())
    with pytest.raises(StaleSessionError):
        await store.set_stop_reason(a_turn(), StopReason.CANCEL)
