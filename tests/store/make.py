"""Records as the engine would make them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from opencode_mcp.clock import Clock
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import (
    Capacity,
    EndAction,
    Instance,
    InstanceKind,
    RequestClaim,
    Session,
    StartIntent,
    Submission,
    Tombstone,
    Turn,
)

if TYPE_CHECKING:
    from opencode_mcp.store.connection import Database, Transaction
    from opencode_mcp.store.store import Store

#: An end for waits that would otherwise hang a failing test.
LIMIT_S = 10.0

START = datetime(2026, 1, 31, 23, 59, 59, 123456, tzinfo=UTC)
INSTANCE = Instance(
    id="inst", kind=InstanceKind.MANAGED, url=None, settings_key="key", data_id=None
)


#: ceilings that no test reaches by chance
ROOMY = Capacity(sessions=10_000)


class SteppingClock(Clock):
    """A clock that is a second later each time it is asked."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def a_session(session_id: str = "ses_1", *, owner: str = "local", age_s: float = 0) -> Session:
    moment = START - timedelta(seconds=age_s)
    return Session(
        id=session_id,
        owner=owner,
        instance_id=INSTANCE.id,
        directory="/project",
        phase=Phase.ACTIVE,
        version=1,
        created_at=moment,
        updated_at=moment,
        title="A title",
        model="test/model",
        base_instructions="Be brief.",
    )


def a_turn(session_id: str = "ses_1", number: int = 1) -> Turn:
    return Turn(
        session_id=session_id,
        number=number,
        message_id=f"msg_{number}",
        boundary=None,
        submission=Submission.RECORDED,
        created_at=START,
        deadline_at=START + timedelta(hours=1),
    )


def a_start(token: str = "start", *, owner: str = "local") -> StartIntent:  # noqa: S107 - no secret
    return StartIntent(
        token=token, owner=owner, instance_id=INSTANCE.id, directory="/project", created_at=START
    )


def a_tombstone(session_id: str = "ses_1", *, ended_at: datetime = START) -> Tombstone:
    return Tombstone(
        session_id=session_id,
        owner="local",
        action=EndAction.DELETE,
        ended_at=ended_at,
        answer_json='{"kind": "end"}',
    )


def a_claim(call: str = "call-1", *, owner: str = "local", digest: str = "digest") -> RequestClaim:
    return RequestClaim(
        owner=owner,
        request_id="id",
        digest=digest,
        call=call,
        newest_call=call,
        holder="me",
        created_at=START,
        expires_at=START + timedelta(hours=24),
    )


async def tracked(store: Store, session_id: str = "ses_1", *, owner: str = "local") -> Session:
    """Return a session that `store` tracks, without a turn."""
    await store.put_instance(INSTANCE)
    session = a_session(session_id, owner=owner)
    await store.track("no-start", session, None)
    return session


async def ended(store: Store, session_id: str = "ses_1") -> None:
    """Track a session and end it."""
    await tracked(store, session_id)
    await store.begin_end(session_id, None, EndAction.DELETE)
    lease = await store.take_lease(session_id, "me", None)
    if lease is None:
        msg = "a fresh lease was refused"
        raise AssertionError(msg)
    await store.finish_end(a_tombstone(session_id), lease.fence)


async def insert(write: Transaction, name: str) -> None:
    """Insert a row into the table that depends on no other."""
    await write.run(
        "INSERT INTO tombstones VALUES (?, 'local', 'delete', '2026-01-01', '{}')", [name]
    )


async def names(database: Database) -> list[str]:
    """Return the names that `insert` was given."""
    rows = await database.rows("SELECT session_id FROM tombstones ORDER BY session_id")
    return [row["session_id"] for row in rows]
