"""`sessions list` and `sessions show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.presenting import ending_state
from opencode_mcp.cli.screen import (
    EXIT_NOT_FOUND,
    age,
    note,
    print_facts,
    print_json,
    print_table,
)
from opencode_mcp.cli.visiting import OPERATOR
from opencode_mcp.clock import Clock
from opencode_mcp.counting import counted
from opencode_mcp.engine.ends import is_given_up
from opencode_mcp.errors import SessionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.engine.overview import Line, View
    from opencode_mcp.records import Instance, Session, Tombstone, Turn

Json: TypeAlias = dict[str, Any]


async def list_page(
    runtime: Runtime, *, owner: str | None, limit: int, offset: int, as_json: bool
) -> int:
    """Show a page of the tracked sessions; return the exit code."""
    engine = await runtime.engine()
    lines, total = await engine.page(OPERATOR, offset=offset, limit=limit, owner=owner)
    following = offset + len(lines)
    more = following < total
    if as_json:
        page: Json = {
            "sessions": [_listed(line) for line in lines],
            "total": total,
            "offset": offset,
            "hasMore": more,
        }
        print_json(page | ({"nextOffset": following} if more else {}))
        return 0
    _print_lines(lines)
    whose = f" of {owner}" if owner else ""
    if not total:
        note(f"no session{whose} is tracked in {runtime.settings.database}")
    elif more or offset:
        hint = f"; more with --offset {following}" if more else ""
        note(f"{len(lines)} of {counted(total, 'session')}{whose}, from {offset}{hint}")
    return 0


def _print_lines(lines: Sequence[Line]) -> None:
    if not lines:
        return
    now = Clock().now()
    several = any(line.session.owner != OPERATOR.name for line in lines)
    headings = ("SESSION", "STATUS", "TURNS", "USED", *(["OWNER"] if several else []), "TITLE")
    rows = [
        (
            line.session.id,
            line.status,
            str(line.session.turn_count),
            age(now - line.session.updated_at),
            *([line.session.owner] if several else []),
            line.session.title or line.session.directory,
        )
        for line in lines
    ]
    print_table(headings, rows)


def _listed(line: Line) -> Json:
    return _facts(line.session) | {
        "status": line.status,
        "pendingApprovalCount": line.pending_count,
    }


def _facts(session: Session) -> Json:
    """Return what is told of a session in a list and alone."""
    facts: Json = {
        "sessionId": session.id,
        "owner": session.owner,
        "title": session.title,
        "directory": session.directory,
        "turns": session.turn_count,
        "createdAt": iso(session.created_at),
        "updatedAt": iso(session.updated_at),
        "instanceId": session.instance_id,
    }
    return facts | ({"ending": ending_state(session.ending)} if session.ending else {})


async def show_one(runtime: Runtime, *, reference: str, as_json: bool) -> int:
    """Show a session, or how it ended; return the exit code."""
    engine = await runtime.engine()
    try:
        view = await engine.glance(reference, OPERATOR)
    except SessionNotFoundError:
        tombstone = await runtime.store.tombstone(reference)
        if tombstone is None:
            note(f"opencode-mcp: {unknown(runtime, reference)}")
            return EXIT_NOT_FOUND
        facts = _tombstone(tombstone, await runtime.store.aliases(tombstone.session_id))
    else:
        facts = await _session(runtime, view)
    if as_json:
        print_json(facts)
    else:
        print_facts([(name, text) for name, text in _lines(facts) if text])
    return 0


def unknown(runtime: Runtime, reference: str) -> str:
    """Return the sentence about an id that is not tracked."""
    return (
        f"no session {reference[:100]!r} is tracked in {runtime.settings.database}:"
        " `opencode-mcp sessions list` shows those that are"
    )


async def _session(runtime: Runtime, view: View) -> Json:
    session = view.session
    instance = await runtime.store.instance(session.instance_id)
    facts = _facts(session) | {
        "status": _status(view),
        "aliases": await runtime.store.aliases(session.id),
        "model": session.model,
        "agent": session.agent,
        "variant": session.variant,
        "sandbox": session.sandbox.value,
        "approvalPolicy": session.approval_policy.value,
        "instance": _instance(instance) if instance else None,
        "turn": _turn(runtime, view.turn) if view.turn else None,
    }
    return facts | ({"unknownBecause": view.unknown_because} if view.unknown_because else {})


def _status(view: View) -> str:
    """Return the word that opencode-status would use."""
    if view.session.phase.value != "active":
        return view.session.phase.value
    if view.verdict is not None:
        return view.verdict.status.value
    return "unknown" if view.unknown_because else "idle"


def _instance(instance: Instance) -> Json:
    return {
        "id": instance.id,
        "kind": instance.kind.value,
        "url": instance.url,
        "isDead": instance.dead,
    }


def _turn(runtime: Runtime, turn: Turn) -> Json:
    alive = turn.holder is not None and runtime.operator().is_alive(turn.holder)
    return {
        "turn": turn.number,
        "turnId": turn.message_id,
        "createdAt": iso(turn.created_at),
        "deadlineAt": iso(turn.deadline_at),
        "finishedAt": iso(turn.finished_at) if turn.finished_at else None,
        "stopReason": turn.stop_reason.value if turn.stop_reason else None,
        "submission": turn.submission.value,
        "isHeld": alive and turn.finished_at is None,
    }


def _tombstone(tombstone: Tombstone, aliases: list[str]) -> Json:
    forgotten = is_given_up(tombstone)
    return {
        "sessionId": tombstone.session_id,
        "owner": tombstone.owner,
        "status": "forgotten" if forgotten else "ended",
        "action": None if forgotten else tombstone.action.value,
        "endedAt": iso(tombstone.ended_at),
        "aliases": aliases,
    }


def _lines(facts: Json) -> list[tuple[str, str]]:
    """Return the facts as lines for people; an empty text is left out."""
    lines = [
        ("session", facts["sessionId"]),
        ("status", facts["status"]),
        ("why", facts.get("unknownBecause", "")),
        ("owner", facts["owner"]),
        ("aliases", ", ".join(facts["aliases"])),
    ]
    if "endedAt" in facts:
        proof = facts["action"] or "without proof: see `opencode-mcp sessions forget --help`"
        return [*lines, ("when", f"{facts['endedAt']} ({proof})")]
    ending = facts.get("ending")
    return [
        *lines,
        ("title", facts["title"] or ""),
        ("folder", facts["directory"]),
        ("created", facts["createdAt"]),
        ("used", facts["updatedAt"]),
        ("model", " ".join(filter(None, (facts["model"], facts["variant"])))),
        ("agent", facts["agent"] or ""),
        ("sandbox", f"{facts['sandbox']}, approvals: {facts['approvalPolicy']}"),
        ("OpenCode", _instance_text(facts)),
        ("turn", _turn_text(facts["turn"]) if facts["turn"] else "none yet"),
        ("ending", _ending_text(ending) if ending else ""),
    ]


def _instance_text(facts: Json) -> str:
    instance = facts["instance"]
    if instance is None:
        return f"{facts['instanceId']}, which is not on record"
    state = ", ended; the next one on its data goes on" if instance["isDead"] else ""
    return f"{instance['kind']} {instance['url'] or instance['id']}{state}"


def _turn_text(turn: Json) -> str:
    parts = [f"{turn['turn']}, begun {turn['createdAt']}"]
    if turn["finishedAt"]:
        parts.append(f"seen to be over {turn['finishedAt']}")
    else:
        held = "kept by a server that runs" if turn["isHeld"] else "kept by no server that runs"
        parts.append(f"{held}, to stop at {turn['deadlineAt']}")
    if turn["stopReason"]:
        parts.append(f"asked to stop: {turn['stopReason']}")
    return "; ".join(parts)


def _ending_text(ending: Json) -> str:
    text = f"{ending['action']} accepted {ending['since']}, tried {ending['attempt']} times"
    if "nextTryAt" in ending:
        text += f", next try {ending['nextTryAt']}"
    return text + (f"; last: {ending['lastError']}" if "lastError" in ending else "")
