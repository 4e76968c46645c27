"""Our client against the `/doc` of the installed OpenCode: routes, what we send, what we read."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import jsonschema

from opencode_mcp.opencode.client import OpencodeClient, Prompt
from opencode_mcp.opencode.models import (
    Agent,
    Catalogue,
    Health,
    Message,
    Paths,
    PermissionRequest,
    Providers,
    QuestionRequest,
    RemoteSession,
    RemoteStatus,
)
from opencode_mcp.opencode.whole_messages import WholeMessage
from tests.real.support.scripts import ask_which
from tests.scenarios.doc_shapes import Shapes
from tests.scenarios.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.scenarios.peer import Place
    from tests.twin import Seen, Twin
    from tests.twin.shapes import Json

#: what each method reads; None: an answer without a body
_READS: dict[str, Any] = {
    "health": Health,
    "paths": Paths,
    "create_session": RemoteSession,
    "session": RemoteSession,
    "sessions": list[RemoteSession],
    "children": list[RemoteSession],
    "statuses": dict[str, RemoteStatus],
    "messages": list[Message],
    "message": Message,
    "whole_messages": list[WholeMessage],
    "whole_message": WholeMessage,
    "prompt_async": None,
    "abort": bool,
    "permissions": list[PermissionRequest],
    "questions": list[QuestionRequest],
    "reject_permission": bool,
    "reject_question": bool,
    "reply_permission": bool,
    "reply_question": bool,
    "dispose": bool,
    "delete_session": bool,
    "archive_session": RemoteSession,
    "agents": list[Agent],
    "providers": Providers,
    "catalogue": Catalogue,
}


def _calls(
    client: OpencodeClient, session_id: str, folder: str, question_id: str
) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return one call of each method, with every field it can send."""
    prompt = Prompt("msg_doc", "SAY:hi", "scripted/one", "build", "default", "Be kind.")
    return {
        "health": client.health,
        "paths": lambda: client.paths(folder),
        "create_session": lambda: client.create_session(
            folder, title="T", metadata={"a": "b"}, denied=("edit",)
        ),
        "session": lambda: client.session(session_id),
        "sessions": lambda: client.sessions(folder),
        "children": lambda: client.children(session_id),
        "statuses": lambda: client.statuses(folder),
        "prompt_async": lambda: client.prompt_async(session_id, prompt),
        "messages": lambda: client.messages(session_id, limit=1),
        "message": lambda: client.message(session_id, "msg_doc"),
        "whole_messages": lambda: client.whole_messages(session_id, limit=1),
        "whole_message": lambda: client.whole_message(session_id, "msg_doc"),
        "abort": lambda: client.abort(session_id, folder),
        "permissions": lambda: client.permissions(folder),
        "questions": lambda: client.questions(folder),
        "reject_permission": lambda: client.reject_permission("per_none", folder),
        "reject_question": lambda: client.reject_question(question_id, folder),
        "reply_permission": lambda: client.reply_permission(
            "per_none", folder, "reject", message="no"
        ),
        "reply_question": lambda: client.reply_question("que_none", folder, [["a"]]),
        "agents": lambda: client.agents(folder),
        "providers": lambda: client.providers(folder),
        "catalogue": lambda: client.catalogue(folder),
        "archive_session": lambda: client.archive_session(session_id, datetime.now(UTC)),
        "delete_session": lambda: client.delete_session(session_id),
        "dispose": lambda: client.dispose(folder),
    }


async def _sent(twin: Twin, place: Place) -> dict[str, Seen]:
    """Let the client call everything once, and return the request that each method made."""
    sent: dict[str, Seen] = {}
    async with (
        Peer(place) as peer,
        OpencodeClient(
            twin.url, username=twin.username, password=twin.password, request_timeout_s=10
        ) as client,
    ):
        session_id = await peer.create()
        asks = await peer.begin(ask_which())
        (question,) = await peer.asked(asks, "question", peer.project)
        calls = _calls(client, session_id, peer.project, question["id"])
        for name, call in calls.items():
            if name == "message":
                await peer.answered(session_id)
            before = len(twin.requests)
            await call()
            (sent[name],) = twin.requests[before:]
    return sent


async def test_the_client_asks_only_for_what_opencode_documents(
    twin: Twin, twin_place: Place, real_place: Place
) -> None:
    """A method of the client that is not called here fails too."""
    public = {
        name
        for name, _ in inspect.getmembers(OpencodeClient, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    sent = await _sent(twin, twin_place)
    async with Peer(real_place) as peer:
        document: Json = await peer.get("/doc")

    assert set(sent) == set(_READS) == public
    found = [gap for name, seen in sent.items() for gap in _gaps(document, name, seen)]
    assert found == []
    assert "text/event-stream" in _success(document["paths"]["/global/event"]["get"])["content"]


def _gaps(document: Json, name: str, seen: Seen) -> list[str]:
    operation = _operation(document, seen)
    if operation is None:
        return [f"{name}: {seen.line} is unknown"]
    parameters = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    gaps = [f"{name}: query {one} is unknown" for one in set(seen.query) - parameters]
    if seen.body is not None:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        whole = {**schema, "components": document["components"]}
        checker = jsonschema.Draft202012Validator(whole)
        gaps += [f"{name}: body {fault.message}" for fault in checker.iter_errors(seen.body)]
    shape, answer = _READS[name], _success(operation)
    if shape is None:
        return gaps if not answer.get("content") else [*gaps, f"{name}: has a body"]
    schema = answer["content"]["application/json"]["schema"]
    return [*gaps, *Shapes(document).gaps(shape, schema, name)]


def _operation(document: Json, seen: Seen) -> Json | None:
    """Find the operation; a path without a parameter is nearer than one with."""
    for template in sorted(document["paths"], key=lambda path: path.count("{")):
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, seen.path):
            found: Json | None = document["paths"][template].get(seen.method.lower())
            return found
    return None


def _success(operation: Json) -> Json:
    code = min(code for code in operation["responses"] if code.startswith("2"))
    answer: Json = operation["responses"][code]
    return answer
