"""A second client that reads OpenCode beside us: what it says is what counts in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import aiohttp
import aiohttp.web

from tests.real.support.opencode_server import USERNAME
from tests.support.polling import PATIENCE_S, eventually, steadily

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from opencode_mcp.cli.scripted_model import Json, ScriptedModel
    from tests.real.support.processes import Marker

#: an abort that was lost showed itself as busy within 1 s (facts 4.6)
_QUIET_S = 1.5


class Witness:
    """Reads one OpenCode, and the scripted model behind it. It shares no code with the product."""

    def __init__(self, url: str, password: str, model: ScriptedModel) -> None:
        self.url = url
        self.model = model
        self._headers = {"Authorization": aiohttp.encode_basic_auth(USERNAME, password)}

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            self.url, headers=self._headers, timeout=aiohttp.ClientTimeout(total=20)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.close()

    async def session(self, session_id: str) -> Json | None:
        """Return the session as OpenCode has it; None if OpenCode says that there is none."""
        async with self._http.get(f"/session/{quote(session_id, safe='')}") as answer:
            found: Json = await answer.json()
            if answer.status == aiohttp.web.HTTPNotFound.status_code:
                return None
            answer.raise_for_status()
            return found

    async def sessions(self, directory: Path) -> list[Json]:
        """Return the sessions of a folder, archived ones too (facts 6.5)."""
        found: list[Json] = await self._get("/session", directory, limit="1000")
        return found

    async def children(self, session_id: str) -> list[Json]:
        """Return the direct sub-sessions."""
        found: list[Json] = await self._get(f"/session/{session_id}/children")
        return found

    async def messages(self, session_id: str) -> list[Json]:
        """Return the whole history, `{info, parts}` each."""
        found: list[Json] = await self._get(f"/session/{session_id}/message")
        return found

    async def user_texts(self, session_id: str) -> list[str]:
        """Return what the user said, in order."""
        return [
            "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")
            for message in await self.messages(session_id)
            if message["info"]["role"] == "user"
        ]

    async def busy(self, directory: Path) -> set[str]:
        """Return the sessions of a folder that are not idle."""
        return set(await self._get("/session/status", directory))

    async def permissions(self, directory: Path) -> list[Json]:
        """Return what waits for leave in a folder."""
        found: list[Json] = await self._get("/permission", directory)
        return found

    async def questions(self, directory: Path) -> list[Json]:
        """Return what waits for an answer in a folder."""
        found: list[Json] = await self._get("/question", directory)
        return found

    async def create(self, directory: Path, **body: object) -> str:
        """Make a session as some other client would; return its id."""
        url = f"/session?directory={quote(str(directory), safe='')}"
        async with self._http.post(url, json=body) as answer:
            answer.raise_for_status()
            return str((await answer.json())["id"])

    async def prompt(self, session_id: str, *parts: Json) -> None:
        """Prompt a session as some other client would."""
        url = f"/session/{session_id}/prompt_async"
        async with self._http.post(url, json={"parts": list(parts)}) as answer:
            answer.raise_for_status()

    async def abort(self, session_id: str) -> None:
        """Stop a session as some other client would."""
        async with self._http.post(f"/session/{session_id}/abort") as answer:
            answer.raise_for_status()

    async def delete(self, session_id: str) -> None:
        """Delete a session as some other client would, whatever it does."""
        async with self._http.delete(f"/session/{session_id}") as answer:
            answer.raise_for_status()

    async def silence(self, directory: Path) -> None:
        """Stop all that is busy in a folder, so that a failed test does not slow the next one."""
        for session_id in await self.busy(directory):
            await self.abort(session_id)

    async def clear(self, directory: Path) -> None:
        """Stop and delete all sessions of a folder, and dismiss all that waits in it."""
        await self.silence(directory)
        await self.clear_asks(directory)
        for session in await self.sessions(directory):
            async with self._http.delete(f"/session/{session['id']}"):
                pass

    async def clear_asks(self, directory: Path) -> None:
        """Dismiss all that waits in a folder."""
        for kind, waiting in (
            ("permission", await self.permissions(directory)),
            ("question", await self.questions(directory)),
        ):
            verb = "reply" if kind == "permission" else "reject"
            for item in waiting:  # a 404 is fine: one rejection may take its siblings along
                url = f"/{kind}/{item['id']}/{verb}?directory={quote(str(directory), safe='')}"
                async with self._http.post(url, json={"reply": "reject"}):
                    pass

    def streams(self, session_id: str) -> list[int]:
        """Return the model's open streams for a session, by request number."""
        return [
            stream.number for stream in self.model.open_streams if stream.session_id == session_id
        ]

    async def streaming(self, session_id: str, *, within_s: float = PATIENCE_S) -> None:
        """Wait until the model is answering this session."""

        async def check() -> bool:
            return bool(self.streams(session_id))

        await eventually(check, within_s=within_s, what=f"the model answers {session_id}")

    async def answered(self, session_id: str) -> None:
        """Wait until the newest message is a complete answer."""

        async def check() -> bool:
            newest = (await self.messages(session_id) or [{"info": {"role": ""}}])[-1]["info"]
            return newest["role"] == "assistant" and "completed" in newest["time"]

        await eventually(check, what=f"{session_id} is answered")

    async def idle(self, directory: Path, *, within_s: float = PATIENCE_S) -> None:
        """Wait until nothing of a folder is busy."""

        async def check() -> bool:
            return not await self.busy(directory)

        await eventually(check, within_s=within_s, what=f"nothing busy in {directory}")

    async def ended(  # noqa: PLR0913 - a session and what may be left of it
        self,
        session_id: str,
        directory: Path,
        *,
        archived: bool = False,
        tree: tuple[str, ...] = (),
        marker: Marker | None = None,
        quiet_s: float = _QUIET_S,
    ) -> None:
        """Fail unless the session and its tree are over, now and for `quiet_s` after.

        Over: deleted (or archived), nothing busy, nothing pending, no stream, no process.
        """
        for member in (session_id, *tree):
            await self._gone(member, archived=archived)
        assert not await self.leftovers(session_id, directory, tree, marker)

        async def check() -> bool:
            return not await self.leftovers(session_id, directory, tree, marker)

        await steadily(check, for_s=quiet_s, what=f"nothing is left of {session_id}")
        for member in (session_id, *tree):
            await self._gone(member, archived=archived)

    async def _gone(self, session_id: str, *, archived: bool) -> None:
        found = await self.session(session_id)
        if archived:
            assert found is not None, f"{session_id} was deleted, not archived"
            assert "archived" in found["time"], f"{session_id} is not archived"
        else:
            assert found is None, f"{session_id} still exists"

    async def leftovers(
        self,
        session_id: str,
        directory: Path,
        tree: tuple[str, ...] = (),
        marker: Marker | None = None,
    ) -> list[str]:
        """Name all that still runs or waits for the session and its tree."""
        members = {session_id, *tree}
        pending = [*await self.permissions(directory), *await self.questions(directory)]
        left = [f"{member} busy" for member in members & await self.busy(directory)]
        left += [f"{item['id']} waits" for item in pending if item["sessionID"] in members]
        left += [f"{member} streams" for member in members if self.streams(member)]
        if marker is not None:
            left += [f"process {pid}" for pid in marker.pids()]
        return left

    async def _get(self, path: str, directory: Path | None = None, **query: str) -> Any:  # noqa: ANN401 - JSON, typed by each caller
        parameters = query if directory is None else {"directory": str(directory), **query}
        async with self._http.get(path, params=parameters) as answer:
            answer.raise_for_status()
            return await answer.json()
