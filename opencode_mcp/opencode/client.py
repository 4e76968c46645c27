"""OpenCode's routes, one short method each; what they mean and how they behave is in the facts.

Every method raises OpencodeError (see `http.py`) and takes `timeout_s`, in seconds, which can
only shorten the client's own limit; tries and pauses are included. Routes below
`/session/{id}` act in the session's own folder; the lists need it named (facts 1.4).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import TypeAdapter

from opencode_mcp.clock import Clock
from opencode_mcp.opencode.asks import AskRoutes
from opencode_mcp.opencode.calls import MESSAGES_MAX_BYTES, Call, CallKind, decode, segment
from opencode_mcp.opencode.generation import NOT_OURS
from opencode_mcp.opencode.http import Http
from opencode_mcp.opencode.models import (
    Agent,
    Catalogue,
    Health,
    Message,
    Paths,
    Providers,
    RemoteSession,
    RemoteStatus,
)
from opencode_mcp.opencode.whole_messages import WholeMessageRoutes
from opencode_mcp.opencode_errors import (
    OpencodeNotFoundError,
    OpencodeProtocolError,
    OpencodeUnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from types import TracebackType

_READ, _CHANGE, _SUBMISSION = CallKind.READ, CallKind.CHANGE, CallKind.SUBMISSION

_HEALTH = TypeAdapter(Health)
_TRUE: TypeAdapter[Literal[True]] = TypeAdapter(Literal[True])
_PATHS = TypeAdapter(Paths)
_SESSION = TypeAdapter(RemoteSession)
_SESSIONS = TypeAdapter(list[RemoteSession])
_STATUSES = TypeAdapter(dict[str, RemoteStatus])
_MESSAGE = TypeAdapter(Message)
_MESSAGES = TypeAdapter(list[Message])
_AGENTS = TypeAdapter(list[Agent])
_PROVIDERS = TypeAdapter(Providers)
_CATALOGUE = TypeAdapter(Catalogue)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a turn is asked; `model` is "provider/model". None leaves the choice to OpenCode."""

    message_id: str
    text: str
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages, oldest first, and the cursor to the page before them; None: there is none."""

    messages: list[Message]
    before: str | None


class OpencodeClient(AskRoutes, WholeMessageRoutes):
    """One OpenCode, typed. An async context manager: leaving it closes every connection."""

    def __init__(
        self,
        base_url: str,
        *,
        username: str,
        password: str | None,
        request_timeout_s: float,
        clock: Clock = Clock(),  # noqa: B008 - stateless, and never changed
    ) -> None:
        """`request_timeout_s`: the longest that one call may take, all tries together."""
        self._http = Http(
            base_url, username=username, password=password, limit_s=request_timeout_s, clock=clock
        )
        self.base_url = self._http.base_url

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def health(self, *, timeout_s: float | None = None) -> Health:
        """Say that it is up and which version it is; OpencodeUnsupportedError: none we drive."""
        call = Call(_READ, "GET", "/global/health")
        try:
            return await self._http.read(call, _HEALTH, timeout_s=timeout_s)
        except (OpencodeNotFoundError, OpencodeProtocolError):
            raise call.error(OpencodeUnsupportedError, NOT_OURS) from None

    async def paths(self, directory: str | None = None, *, timeout_s: float | None = None) -> Paths:
        """Say which folder it takes `directory` for; None: the one it runs in."""
        query = {} if directory is None else {"directory": directory}
        call = Call(_READ, "GET", "/path", query)
        return await self._http.read(call, _PATHS, timeout_s=timeout_s)

    async def create_session(
        self,
        directory: str,
        *,
        title: str | None,
        metadata: dict[str, str],
        denied: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> RemoteSession:
        """Make a session. Nothing is checked against reality, not even `directory` (facts 1.2).

        `denied`: permissions that it never gets. Its rules come after the configuration's and the
        last match wins (facts 5.9); a rule that grants something cannot be made here. Never sent
        twice: where the error says `outcome_unknown`, look for `metadata`.
        """
        body: dict[str, object] = {"metadata": metadata}
        if denied:
            body["permission"] = [
                {"permission": name, "pattern": "*", "action": "deny"} for name in denied
            ]
        if title is not None:
            body["title"] = title
        call = Call(_SUBMISSION, "POST", "/session", {"directory": directory}, _json(body))
        return await self._http.read(call, _SESSION, timeout_s=timeout_s)

    async def session(self, session_id: str, *, timeout_s: float | None = None) -> RemoteSession:
        """Read one session; OpencodeNotFoundError if this OpenCode has none of that id."""
        call = Call(_READ, "GET", f"/session/{segment(session_id)}")
        return await self._http.read(call, _SESSION, timeout_s=timeout_s)

    async def sessions(
        self, directory: str, *, limit: int = 100, timeout_s: float | None = None
    ) -> list[RemoteSession]:
        """List the sessions of exactly this folder, newest first, archived ones too (facts 6.5)."""
        query = {"directory": directory, "limit": str(limit)}
        call = Call(_READ, "GET", "/session", query)
        return await self._http.read(call, _SESSIONS, timeout_s=timeout_s)

    async def children(
        self, session_id: str, *, timeout_s: float | None = None
    ) -> list[RemoteSession]:
        """List the direct children only (facts 7.1)."""
        call = Call(_READ, "GET", f"/session/{segment(session_id)}/children")
        return await self._http.read(call, _SESSIONS, timeout_s=timeout_s)

    async def statuses(
        self, directory: str, *, timeout_s: float | None = None
    ) -> dict[str, RemoteStatus]:
        """List who is not idle in this folder; absent means idle, unknown or not begun."""
        call = Call(_READ, "GET", "/session/status", {"directory": directory})
        return await self._http.read(call, _STATUSES, timeout_s=timeout_s)

    async def messages(
        self,
        session_id: str,
        *,
        limit: int,
        before: str | None = None,
        timeout_s: float | None = None,
    ) -> MessagePage:
        """Read the newest `limit` messages, or those before a cursor (facts 11.1)."""
        query = {"limit": str(limit)}
        if before is not None:
            query["before"] = before
        path = f"/session/{segment(session_id)}/message"
        call = Call(_READ, "GET", path, query, max_bytes=MESSAGES_MAX_BYTES)
        answer = await self._http.send(call, timeout_s=timeout_s)
        return MessagePage(decode(call, answer, _MESSAGES), answer.cursor)

    async def message(
        self, session_id: str, message_id: str, *, timeout_s: float | None = None
    ) -> Message:
        """Read one message; OpencodeNotFoundError if it, or its session, does not exist."""
        path = f"/session/{segment(session_id)}/message/{segment(message_id)}"
        call = Call(_READ, "GET", path, max_bytes=MESSAGES_MAX_BYTES)
        return await self._http.read(call, _MESSAGE, timeout_s=timeout_s)

    async def prompt_async(
        self, session_id: str, prompt: Prompt, *, timeout_s: float | None = None
    ) -> None:
        """Hand in a prompt and do not wait for its turn. Taken is not begun (facts 2.4, 4.6).

        Never sent twice: where the error says `outcome_unknown`, look for `prompt.message_id`.
        """
        path = f"/session/{segment(session_id)}/prompt_async"
        call = Call(_SUBMISSION, "POST", path, body=_json(_prompt_body(prompt)), status=204)
        await self._http.send(call, timeout_s=timeout_s)

    async def abort(
        self, session_id: str, directory: str, *, timeout_s: float | None = None
    ) -> None:
        """Stop what the session does. Success proves nothing: read the status (facts 4.5).

        The folder matters for a deleted session that still runs: OpenCode cannot look it up any
        more, and in another folder answers `true` and does nothing (tried on 1.18.33).
        """
        path = f"/session/{segment(session_id)}/abort"
        call = Call(_CHANGE, "POST", path, {"directory": directory})
        await self._http.read(call, _TRUE, timeout_s=timeout_s)

    async def delete_session(self, session_id: str, *, timeout_s: float | None = None) -> bool:
        """Delete the session and its descendants; it stops none of them (facts 6.2).

        False: it did not exist, which a lost answer to an earlier try of ours may have caused.
        """
        call = Call(_CHANGE, "DELETE", f"/session/{segment(session_id)}")
        return await self._done(call, timeout_s)

    async def archive_session(
        self, session_id: str, at: datetime, *, timeout_s: float | None = None
    ) -> bool:
        """Hide the session; there is no way back (facts 6.5). False: it does not exist."""
        body = _json({"time": {"archived": int(at.timestamp() * 1000)}})
        call = Call(_CHANGE, "PATCH", f"/session/{segment(session_id)}", body=body)
        return await self._done(call, timeout_s, _SESSION)

    async def agents(self, directory: str, *, timeout_s: float | None = None) -> list[Agent]:
        """List the agents this folder offers, hidden helpers too (facts 11.4)."""
        call = Call(_READ, "GET", "/agent", {"directory": directory})
        return await self._http.read(call, _AGENTS, timeout_s=timeout_s)

    async def providers(self, directory: str, *, timeout_s: float | None = None) -> Providers:
        """List the providers and models that are set up for this folder."""
        query = {"directory": directory}
        call = Call(_READ, "GET", "/config/providers", query, max_bytes=MESSAGES_MAX_BYTES)
        return await self._http.read(call, _PROVIDERS, timeout_s=timeout_s)

    async def catalogue(self, directory: str, *, timeout_s: float | None = None) -> Catalogue:
        """List every provider that OpenCode could use, and which of them are set up."""
        query = {"directory": directory}
        call = Call(_READ, "GET", "/provider", query, max_bytes=MESSAGES_MAX_BYTES)
        return await self._http.read(call, _CATALOGUE, timeout_s=timeout_s)

    async def dispose(self, directory: str, *, timeout_s: float | None = None) -> None:
        """Drop all that OpenCode holds in memory for a folder; its runs are aborted (facts 9.5)."""
        call = Call(_CHANGE, "POST", "/instance/dispose", {"directory": directory})
        await self._http.read(call, _TRUE, timeout_s=timeout_s)

    def stream_events(
        self, *, silence_s: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open the event stream of all folders (facts 3.2): chunks of bytes, for `SseParser`.

        Raises OpencodeError when it breaks, or sends no byte for `silence_s` seconds.
        """
        return self._http.stream("/global/event", silence_s=silence_s)


def _json(body: dict[str, object]) -> bytes:
    return json.dumps(body).encode()


def _prompt_body(prompt: Prompt) -> dict[str, object]:
    """OpenCode's body of a prompt (facts 2.1); what is None is left out, so that it decides."""
    body: dict[str, object] = {
        "messageID": prompt.message_id,
        "parts": [{"type": "text", "text": prompt.text}],
    }
    if prompt.model is not None:
        provider_id, _, model_id = prompt.model.partition("/")
        body["model"] = {"providerID": provider_id, "modelID": model_id}
    options = {"agent": prompt.agent, "variant": prompt.variant, "system": prompt.system}
    return body | {name: value for name, value in options.items() if value is not None}
