"""Records to rows and back. Moments are text in the database and aware datetimes outside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import (
    ApprovalPolicy,
    EndAction,
    Ending,
    Instance,
    InstanceKind,
    Lease,
    RequestClaim,
    Sandbox,
    Session,
    StartIntent,
    StopReason,
    Submission,
    Tombstone,
    Turn,
)

if TYPE_CHECKING:
    import sqlite3


def to_text(moment: datetime) -> str:
    """Return `moment` as UTC text of fixed width; raise ValueError if it is not aware."""
    if moment.tzinfo is None:
        msg = f"a moment without a time zone: {moment}"
        raise ValueError(msg)
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def to_moment(text: str) -> datetime:
    """Return the moment that `to_text` wrote."""
    return datetime.fromisoformat(text)


def instance_of(row: sqlite3.Row) -> Instance:
    """Return the record of a row of `instances`."""
    return Instance(
        id=row["id"],
        kind=InstanceKind(row["kind"]),
        url=row["url"],
        settings_key=row["settings_key"],
        data_id=row["data_id"],
        dead=bool(row["dead"]),
    )


def start_of(row: sqlite3.Row) -> StartIntent:
    """Return the record of a row of `starts`."""
    return StartIntent(
        token=row["token"],
        owner=row["owner"],
        instance_id=row["instance_id"],
        directory=row["directory"],
        created_at=to_moment(row["created_at"]),
    )


def start_values(start: StartIntent) -> dict[str, object]:
    """Return the columns of `starts`."""
    return {
        "token": start.token,
        "owner": start.owner,
        "instance_id": start.instance_id,
        "directory": start.directory,
        "created_at": to_text(start.created_at),
    }


def session_of(row: sqlite3.Row) -> Session:
    """Return the record of a row of `sessions`."""
    return Session(
        id=row["id"],
        owner=row["owner"],
        instance_id=row["instance_id"],
        directory=row["directory"],
        phase=Phase(row["phase"]),
        version=row["version"],
        created_at=to_moment(row["created_at"]),
        updated_at=to_moment(row["updated_at"]),
        title=row["title"],
        model=row["model"],
        agent=row["agent"],
        variant=row["variant"],
        base_instructions=row["base_instructions"],
        developer_instructions=row["developer_instructions"],
        sandbox=Sandbox(row["sandbox"]),
        approval_policy=ApprovalPolicy(row["approval_policy"]),
        turn_count=row["turn_count"],
        ending=_ending_of(row),
    )


def _ending_of(row: sqlite3.Row) -> Ending | None:
    if row["end_action"] is None:
        return None
    return Ending(
        action=EndAction(row["end_action"]),
        since=to_moment(row["end_since"]),
        attempt=row["end_attempt"],
        last_error=row["end_last_error"],
        delete_sent=bool(row["end_delete_sent"]),
        next_at=row["end_next_at"] and to_moment(row["end_next_at"]),
    )


def session_values(session: Session) -> dict[str, object]:
    """Return the columns of `sessions`."""
    ending = session.ending
    return {
        "id": session.id,
        "owner": session.owner,
        "instance_id": session.instance_id,
        "directory": session.directory,
        "phase": session.phase,
        "version": session.version,
        "created_at": to_text(session.created_at),
        "updated_at": to_text(session.updated_at),
        "title": session.title,
        "model": session.model,
        "agent": session.agent,
        "variant": session.variant,
        "base_instructions": session.base_instructions,
        "developer_instructions": session.developer_instructions,
        "sandbox": session.sandbox,
        "approval_policy": session.approval_policy,
        "turn_count": session.turn_count,
        "end_action": ending and ending.action,
        "end_since": ending and to_text(ending.since),
        "end_attempt": ending.attempt if ending else 0,
        "end_last_error": ending and ending.last_error,
        "end_delete_sent": bool(ending and ending.delete_sent),
        "end_next_at": ending and ending.next_at and to_text(ending.next_at),
    }


def turn_of(row: sqlite3.Row) -> Turn:
    """Return the record of a row of `turns`."""
    return Turn(
        session_id=row["session_id"],
        number=row["number"],
        message_id=row["message_id"],
        boundary=row["boundary"],
        submission=Submission(row["submission"]),
        created_at=to_moment(row["created_at"]),
        deadline_at=to_moment(row["deadline_at"]),
        stop_reason=row["stop_reason"] and StopReason(row["stop_reason"]),
        holder=row["holder"],
        finished_at=row["finished_at"] and to_moment(row["finished_at"]),
        output_schema=row["output_schema"],
    )


def turn_values(turn: Turn) -> dict[str, object]:
    """Return the columns of `turns`."""
    return {
        "session_id": turn.session_id,
        "number": turn.number,
        "message_id": turn.message_id,
        "boundary": turn.boundary,
        "submission": turn.submission,
        "created_at": to_text(turn.created_at),
        "deadline_at": to_text(turn.deadline_at),
        "stop_reason": turn.stop_reason,
        "holder": turn.holder,
        "finished_at": turn.finished_at and to_text(turn.finished_at),
        "output_schema": turn.output_schema,
    }


def tombstone_of(row: sqlite3.Row) -> Tombstone:
    """Return the record of a row of `tombstones`."""
    return Tombstone(
        session_id=row["session_id"],
        owner=row["owner"],
        action=EndAction(row["action"]),
        ended_at=to_moment(row["ended_at"]),
        answer_json=row["answer_json"],
    )


def tombstone_values(tombstone: Tombstone) -> dict[str, object]:
    """Return the columns of `tombstones`."""
    return {
        "session_id": tombstone.session_id,
        "owner": tombstone.owner,
        "action": tombstone.action,
        "ended_at": to_text(tombstone.ended_at),
        "answer_json": tombstone.answer_json,
    }


def lease_of(row: sqlite3.Row) -> Lease:
    """Return the record of a row of `leases`."""
    return Lease(
        session_id=row["session_id"],
        holder=row["holder"],
        fence=row["fence"],
        renewals=row["renewals"],
    )


def claim_of(row: sqlite3.Row) -> RequestClaim:
    """Return the record of a row of `requests`."""
    return RequestClaim(
        owner=row["owner"],
        request_id=row["request_id"],
        digest=row["digest"],
        call=row["call"],
        newest_call=row["newest_call"],
        holder=row["holder"],
        created_at=to_moment(row["created_at"]),
        expires_at=to_moment(row["expires_at"]),
        session_id=row["session_id"],
        turn=row["turn"],
    )


def claim_values(claim: RequestClaim) -> dict[str, object]:
    """Return the columns of `requests`."""
    return {
        "owner": claim.owner,
        "request_id": claim.request_id,
        "digest": claim.digest,
        "call": claim.call,
        "newest_call": claim.newest_call,
        "holder": claim.holder,
        "created_at": to_text(claim.created_at),
        "expires_at": to_text(claim.expires_at),
        "session_id": claim.session_id,
        "turn": claim.turn,
    }
