"""The routes: which path does what, and what each refuses (facts 1, 2, 4-6, 8, 11)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiohttp import web

from opencode_mcp.cli.scripted_model import MODELS, PROVIDER
from tests.twin import bodies, shapes
from tests.twin.paging import BadCursorError, page_of
from tests.twin.shapes import Json, answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.twin.asks import Ask
    from tests.twin.runs import Runs

_REPLIES = ("once", "always", "reject")
_HIDDEN = ("compaction", "summary", "title")
_MODES = {"explore": "subagent", "general": "subagent"}


class Routes:
    """Answers for one OpenCode; `home` is the folder it runs in."""

    def __init__(self, runs: Runs, home: str) -> None:
        self._runs = runs
        self._world = runs.world
        self._asks = runs.asks
        self._home = home

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Mount them; the web app takes all the rest (facts 8.2)."""
        one = "/session/{session}"
        router.add_get("/global/health", self._health)
        router.add_get("/path", self._paths)
        router.add_get("/agent", self._agents)
        router.add_get("/config/providers", self._providers)
        router.add_get("/provider", self._catalogue)
        router.add_post("/session", self._create)
        router.add_get("/session", self._list)
        router.add_get("/experimental/session", self._list_unarchived)
        router.add_get("/session/status", self._statuses)
        router.add_get(one, self._get)
        router.add_patch(one, self._patch)
        router.add_delete(one, self._delete)
        router.add_get(f"{one}/children", self._children)
        router.add_get(f"{one}/message", self._messages)
        router.add_post(f"{one}/message", self._prompt_and_wait)
        router.add_get(one + "/message/{message}", self._message)
        router.add_post(f"{one}/prompt_async", self._prompt)
        router.add_post(f"{one}/abort", self._abort)
        router.add_post(f"{one}/fork", self._fork)
        router.add_post(f"{one}/summarize", self._summarize)
        router.add_post(one + "/permissions/{ask}", self._old_reply)
        router.add_get("/permission", self._permissions)
        router.add_post("/permission/{ask}/reply", self._reply)
        router.add_get("/question", self._questions)
        router.add_post("/question/{ask}/reply", self._answer)
        router.add_post("/question/{ask}/reject", self._dismiss)
        router.add_post("/instance/dispose", self._dispose)
        router.add_post("/global/dispose", self._dispose_all)
        router.add_route("*", "/{rest:.*}", self._web_app)

    def directory(self, http: web.Request) -> str:
        """Return the folder a request is about: query before header (facts 1.3)."""
        named = http.query.get("directory") or http.headers.get("x-opencode-directory")
        return os.path.normpath(os.path.join(self._home, named or ""))  # noqa: PTH118 - as text

    async def _web_app(self, http: web.Request) -> web.Response:
        del http
        return shapes.web_app()

    async def _health(self, http: web.Request) -> web.Response:
        del http
        return answer({"healthy": True, "version": shapes.VERSION})

    async def _paths(self, http: web.Request) -> web.Response:
        home = {name: f"{self._home}/{name}" for name in ("home", "state", "config")}
        return answer({**home, "worktree": "/", "directory": self.directory(http)})

    async def _agents(self, http: web.Request) -> web.Response:
        del http
        names = sorted([*_HIDDEN, "build", "explore", "general", "plan"])
        hidden = {name: {"hidden": True} for name in _HIDDEN}
        return answer(
            [
                {"name": name, "mode": _MODES.get(name, "primary"), **hidden.get(name, {})}
                for name in names
            ]
        )

    async def _providers(self, http: web.Request) -> web.Response:
        del http
        models = {name: shapes.offered_model(name) for name in MODELS}
        key = {"apiKey": "none"}
        named = {"id": PROVIDER, "name": "Scripted model"}
        provider = {**named, "source": "config", "env": [], "options": key, "models": models}
        return answer({"providers": [provider], "default": {PROVIDER: MODELS[0]}})

    async def _catalogue(self, http: web.Request) -> web.Response:
        del http
        known = [
            {"id": PROVIDER, "name": "Scripted model", "env": [], "models": {}},
            {"id": "anthropic", "name": "Anthropic", "env": ["ANTHROPIC_API_KEY"], "models": {}},
        ]
        return answer({"all": known, "default": {PROVIDER: MODELS[0]}, "connected": [PROVIDER]})

    async def _create(self, http: web.Request) -> web.Response:
        body = await bodies.read(http)
        if body is None or not bodies.is_session(body):
            return shapes.bad_request()
        return answer(self._world.create(self.directory(http), body))

    async def _list(self, http: web.Request) -> web.Response:
        return answer(self._listed(http, lambda _: True))

    async def _list_unarchived(self, http: web.Request) -> web.Response:
        everything = http.query.get("archived") == "true"
        return answer(self._listed(http, lambda one: everything or "archived" not in one["time"]))

    def _listed(self, http: web.Request, wanted: Callable[[Json], bool]) -> list[Json]:
        named = http.query.get("directory")
        found = [s for s in self._world.of(self.directory(http) if named else None) if wanted(s)]
        if http.query.get("roots") == "true":
            found = [session for session in found if "parentID" not in session]
        limit = http.query.get("limit", "")
        return found[: int(limit) if limit.isdecimal() else 100]

    async def _statuses(self, http: web.Request) -> web.Response:
        return answer(self._runs.statuses(self.directory(http)))

    def _found(self, http: web.Request) -> Json | web.Response:
        """Return the session a path names; its own folder counts, whatever is asked (facts 1.4)."""
        identifier = http.match_info["session"]
        if not identifier.startswith("ses"):
            return shapes.broken()
        known = self._world.sessions.get(identifier)
        return shapes.not_found("Session", identifier) if known is None else known

    async def _get(self, http: web.Request) -> web.Response:
        session = self._found(http)
        return session if isinstance(session, web.Response) else answer(session)

    async def _patch(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        body = await bodies.read(http) or {}
        archived = (body.get("time") or {}).get("archived")
        if archived is not None:  # there is no way back (facts 6.5)
            session["time"]["archived"] = archived
        changes = {name: body[name] for name in ("title", "metadata") if body.get(name) is not None}
        if "permission" in body:  # appended, not replaced (facts 2.6)
            changes["permission"] = [*session.get("permission", []), *body["permission"]]
        self._world.touch(session, **changes)
        return answer(session)

    async def _delete(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        await self._runs.delete(session["id"])
        return answer(value=True)

    async def _children(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        return answer(self._world.children(session["id"]))

    async def _messages(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        try:
            found, cursor = page_of(self._world.messages(session["id"]), http.query)
        except BadCursorError:
            return shapes.bad_request()
        return answer(found, headers={"X-Next-Cursor": cursor} if cursor else None)

    async def _message(self, http: web.Request) -> web.Response:
        identifier = http.match_info["message"]
        if not identifier.startswith("msg"):
            return shapes.bad_prefix("msg", identifier, "messageID")
        found = self._world.message(http.match_info["session"], identifier)
        return shapes.not_found("Message", identifier) if found is None else answer(found)

    async def _prompt(self, http: web.Request) -> web.Response:
        taken = await self._take(http)
        if isinstance(taken, web.Response):
            return taken
        self._runs.submit(*taken)
        return web.Response(status=204)

    async def _prompt_and_wait(self, http: web.Request) -> web.Response:
        taken = await self._take(http)
        if isinstance(taken, web.Response):
            return taken
        session, _, message_id = taken
        await self._runs.submit(*taken)
        await self._runs.settled(session["id"])
        history = self._world.messages(session["id"])
        given = [m for m in history if m["info"]["role"] == "assistant"]
        asked = self._world.message(session["id"], message_id)
        found = given[-1] if given and not taken[1].get("noReply") else asked
        return shapes.broken() if found is None else answer(found)

    async def _take(self, http: web.Request) -> tuple[Json, Json, str] | web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        body = await bodies.read(http)
        if body is None:
            return shapes.broken()  # broken JSON, here only (facts 2.3)
        refusal = bodies.refuse_prompt(body)
        return refusal or (session, body, body.get("messageID") or shapes.new_id("msg"))

    async def _abort(self, http: web.Request) -> web.Response:
        identifier = http.match_info["session"]
        if not identifier.startswith("ses"):
            return shapes.broken()
        await self._runs.abort(identifier, self.directory(http))
        return answer(value=True)

    async def _fork(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        body = await bodies.read(http) or {}
        return answer(self._world.fork(session, body.get("messageID")))

    async def _summarize(self, http: web.Request) -> web.Response:
        session = self._found(http)
        if isinstance(session, web.Response):
            return session
        self._runs.summarize(session)
        return answer(value=True)

    async def _permissions(self, http: web.Request) -> web.Response:
        return answer(self._asks.of("permission", self.directory(http)))

    async def _questions(self, http: web.Request) -> web.Response:
        return answer(self._asks.of("question", self.directory(http)))

    def _waiting(self, http: web.Request, kind: str) -> Ask | web.Response:
        identifier, prefix = http.match_info["ask"], kind[:3]
        if not identifier.startswith(prefix):
            return shapes.bad_prefix(prefix, identifier, "requestID")
        ask = self._asks.pending.get(identifier)
        in_place = "session" in http.match_info or (
            ask is not None and ask.directory == self.directory(http)  # facts 5.2
        )
        if ask is None or ask.kind != kind or not in_place:
            return shapes.not_pending(kind.capitalize(), identifier)
        return ask

    async def _reply(self, http: web.Request) -> web.Response:
        return await self._decide(http, "reply")

    async def _old_reply(self, http: web.Request) -> web.Response:
        return await self._decide(http, "response")

    async def _decide(self, http: web.Request, field: str) -> web.Response:
        body = await bodies.read(http) or {}
        if body.get(field) not in _REPLIES:
            text = f'Expected "once" | "always" | "reject"\n  at ["{field}"]'
            return shapes.bad_value(text, "Payload")
        ask = self._waiting(http, "permission")
        if isinstance(ask, web.Response):
            return ask
        self._asks.reply(ask, body[field], body.get("message"))
        return answer(value=True)

    async def _answer(self, http: web.Request) -> web.Response:
        ask = self._waiting(http, "question")
        if isinstance(ask, web.Response):
            return ask
        self._asks.answer(ask, (await bodies.read(http) or {})["answers"])
        return answer(value=True)

    async def _dismiss(self, http: web.Request) -> web.Response:
        ask = self._waiting(http, "question")
        if isinstance(ask, web.Response):
            return ask
        self._asks.dismiss(ask)
        return answer(value=True)

    async def _dispose(self, http: web.Request) -> web.Response:
        await self._runs.dispose(self.directory(http))
        return answer(value=True)

    async def _dispose_all(self, http: web.Request) -> web.Response:
        del http
        await self._runs.dispose(None)
        return answer(value=True)
