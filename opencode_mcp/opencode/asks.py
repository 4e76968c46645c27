"""The routes of permissions and questions; a part of the client (facts 5).

Asks are listed and answered in the folder of the session that asks, and nowhere else (facts 5.1).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from opencode_mcp.opencode.calls import Call, CallKind, segment
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
from opencode_mcp.opencode_errors import OpencodeNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.http import Http

_READ, _CHANGE, _SUBMISSION = CallKind.READ, CallKind.CHANGE, CallKind.SUBMISSION

_TRUE: TypeAdapter[Literal[True]] = TypeAdapter(Literal[True])
_PERMISSIONS = TypeAdapter(list[PermissionRequest])
_QUESTIONS = TypeAdapter(list[QuestionRequest])


class AskRoutes:
    """What the client can do with asks. `OpencodeClient` tells of errors and of `timeout_s`."""

    _http: Http

    async def permissions(
        self, directory: str, *, timeout_s: float | None = None
    ) -> list[PermissionRequest]:
        """List the permissions that are waited for in this folder, orphans too (facts 5.5)."""
        call = Call(_READ, "GET", "/permission", {"directory": directory})
        return await self._http.read(call, _PERMISSIONS, timeout_s=timeout_s)

    async def questions(
        self, directory: str, *, timeout_s: float | None = None
    ) -> list[QuestionRequest]:
        """List the questions that are waited for in this folder, orphans too (facts 5.8)."""
        call = Call(_READ, "GET", "/question", {"directory": directory})
        return await self._http.read(call, _QUESTIONS, timeout_s=timeout_s)

    async def reject_permission(
        self, request_id: str, directory: str, *, timeout_s: float | None = None
    ) -> bool:
        """Say no, without a message, which would let the turn go on (facts 5.3).

        False: it was not pending in this folder, or no longer.
        """
        path = f"/permission/{segment(request_id)}/reply"
        body = _json({"reply": "reject"})
        call = Call(_CHANGE, "POST", path, {"directory": directory}, body)
        return await self._done(call, timeout_s)

    async def reject_question(
        self, request_id: str, directory: str, *, timeout_s: float | None = None
    ) -> bool:
        """Dismiss a question. False: it was not pending in this folder, or no longer."""
        path = f"/question/{segment(request_id)}/reject"
        call = Call(_CHANGE, "POST", path, {"directory": directory})
        return await self._done(call, timeout_s)

    async def reply_permission(
        self,
        request_id: str,
        directory: str,
        reply: Literal["once", "reject"],
        *,
        message: str | None = None,
        timeout_s: float | None = None,
    ) -> bool:
        """Answer a permission; a `message` goes to the model, whose turn goes on (facts 5.3).

        `always` cannot be said: it would grant the same to everybody in that project (facts 5.4).
        False: it was not pending in this folder, or no longer. Never sent twice, or that could
        not be told from a second answer: where the error says `outcome_unknown`, read the list.
        """
        path = f"/permission/{segment(request_id)}/reply"
        body: dict[str, object] = {"reply": reply}
        if message is not None:
            body["message"] = message
        call = Call(_SUBMISSION, "POST", path, {"directory": directory}, _json(body))
        return await self._done(call, timeout_s)

    async def reply_question(
        self,
        request_id: str,
        directory: str,
        answers: Sequence[Sequence[str]],
        *,
        timeout_s: float | None = None,
    ) -> bool:
        """Answer a question: for each of its items the chosen labels, or a text.

        OpenCode takes any text (tried). Otherwise as `reply_permission`.
        """
        path = f"/question/{segment(request_id)}/reply"
        body = _json({"answers": [list(answer) for answer in answers]})
        call = Call(_SUBMISSION, "POST", path, {"directory": directory}, body)
        return await self._done(call, timeout_s)

    async def _done(
        self, call: Call, timeout_s: float | None, shape: TypeAdapter[Any] = _TRUE
    ) -> bool:
        try:
            await self._http.read(call, shape, timeout_s=timeout_s)
        except OpencodeNotFoundError:
            return False
        return True


def _json(body: dict[str, object]) -> bytes:
    return json.dumps(body).encode()
