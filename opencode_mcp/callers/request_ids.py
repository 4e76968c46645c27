"""The request-id of a call: what counts as the same call, and what its answer says of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import AwareDatetime, BaseModel

from opencode_mcp.callers.argument_kinds import Arguments, SessionReference
from opencode_mcp.callers.arguments import ReplyArguments, StartArguments
from opencode_mcp.engine.requests import RepeatableCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.overview import View
    from opencode_mcp.records import RequestClaim

    #: sends the prompt, for a claim or for none
    Beginning: TypeAlias = Callable[[RequestClaim | None], Awaitable[Keeper]]

#: how long a call watches and how much it shows: of no weight for what is sent
_ASIDE = frozenset({"request-id", "wait-seconds", "detail", "max-output-chars"})


class SealedCall(BaseModel):
    """What a call that its client repeats with a person's answers carries of its request-id."""

    token: str
    replayed: bool
    expires_at: AwareDatetime | None


def repeatable_call(tool: str, arguments: Arguments, owner: str) -> RepeatableCall | None:
    """Return the call that `arguments` make repeatable; None: they bring no request-id."""
    if not isinstance(arguments, StartArguments | ReplyArguments) or arguments.request_id is None:
        return None
    request_id = arguments.request_id
    return RepeatableCall(owner, request_id, digest_of(tool, arguments, owner, request_id))


def digest_of(tool: str, arguments: Arguments, owner: str, request_id: str) -> str:
    """Return the digest of what a call asks for: equal if the same is sent, whatever the order.

    A plain hash: it keeps texts out of the table and guards no secret, since its key would lie in
    the same database. Owner and id go in, so that equal prompts do not show as such.
    """
    # without what is absent: an argument that a later release adds changes no digest
    asked = {
        name: value
        for name, value in arguments.model_dump(by_alias=True).items()
        if value is not None and name not in _ASIDE
    }
    if isinstance(arguments, SessionReference):  # one id, by whichever of its three names
        for name in arguments.references:
            asked["sessionId"] = asked.pop(name)
    parts = [owner, request_id, tool, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).hexdigest()


async def begun(engine: Engine, call: RepeatableCall | None, begin: Beginning) -> View:
    """Begin a turn, or join the one that the same call began before; return where it stands."""
    if call is not None:
        return await engine.owning.once(call, begin)
    from opencode_mcp.engine.overview import View  # noqa: PLC0415 - late: it needs the engine

    keeper = await begin(None)
    return View(keeper.session, keeper.turn, keeper.verdict, keeper=keeper)


def seal(call: RepeatableCall | None) -> SealedCall | None:
    """Return what the client is to bring back."""
    if call is None:
        return None
    return SealedCall(token=call.token, replayed=call.replayed, expires_at=call.expires_at)


def unseal(call: RepeatableCall | None, sealed: SealedCall | None) -> None:
    """Let the repeated call be the one that it goes on with."""
    if call is not None and sealed is not None:
        call.token = sealed.token
        call.replayed, call.expires_at = sealed.replayed, sealed.expires_at


def with_request(result: Result, call: RepeatableCall | None) -> Result:
    """Return the result with what is known of its call's request-id, in both of its halves."""
    if call is None:
        return result
    from opencode_mcp.callers.moments import iso  # noqa: PLC0415 - late, as where it is made
    from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, fit  # noqa: PLC0415

    fields: dict[str, Any] = {"id": call.request_id, "replayed": call.replayed}
    if call.expires_at is not None:
        fields["expiresAt"] = iso(call.expires_at)
    told: Any = {**result, "request": fields}
    if call.replayed and result.get("error", {}).get("name") != "REQUEST_PENDING":
        told["content"] += (
            f"\n[request-id {call.request_id}: begun by an earlier call; this one sent nothing]"
        )
    return fit(told, MAX_RESULT_CHARS)  # within the room that is kept free for this
