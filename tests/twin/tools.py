"""The tools: bash, task, question, write, edit, read, webfetch, as far as a bridge can see them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from tests.twin.shapes import Json, new_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tests.twin.tool_call import ToolCall

    Tool: TypeAlias = Callable[[ToolCall], Awaitable[tuple[str, str, Json]]]

#: tools that ask for leave under another name
PERMISSION_OF: Mapping[str, str] = MappingProxyType({"write": "edit"})
_SLEEP = re.compile(r"sleep ([\d.]+)$")


class ToolError(Exception):
    """The call failed; the turn goes on."""


async def _bash(call: ToolCall) -> tuple[str, str, Json]:
    """Run `sleep` and `echo`, one after the other; any other word succeeds at once."""
    command = str(call.args["command"])
    await call.ask("bash", [command], [f"{command.split(maxsplit=1)[0]} *"], command=command)
    call.start(metadata={"output": ""})
    call.has_shell, call.is_stubborn = True, "trap ''" in command
    shells = call.run.runs.shells
    shells.append(command)
    try:
        code = await _shell(call, command)
    except asyncio.CancelledError:  # an abort kills it; a kill of OpenCode does not (facts 9.4)
        if not call.run.is_killed and "setsid" not in command:
            shells.remove(command)
        raise
    shells.remove(command)
    output = call.output or "(no output)"
    return output, command, {"output": output, "exit": code, "truncated": False}


async def _shell(call: ToolCall, command: str) -> int:
    code = 0
    for one in re.split(r"&&|;", command):
        word = one.strip()
        if nap := _SLEEP.search(word):
            await asyncio.sleep(float(nap[1]))
        elif word.startswith("echo "):
            call.output += word.removeprefix("echo ") + "\n"
            call.start(metadata={"output": call.output})
        elif word.startswith("exit "):
            code = int(word.removeprefix("exit "))
    return code


async def _task(call: ToolCall) -> tuple[str, str, Json]:
    """Hand the prompt to a child session and wait for its answer (facts 7)."""
    run, runs = call.run, call.run.runs
    agent, title = str(call.args["subagent_type"]), str(call.args["description"])
    await call.ask("task", [agent], ["*"], description=title)
    denied = [rule for rule in run.session.get("permission", []) if rule["action"] == "deny"]
    child = runs.world.create(
        run.directory,
        {
            "parentID": run.session_id,
            "title": f"{title} (@{agent} subagent)",
            "agent": agent,
            "model": run.session["model"],
            "permission": [*denied, {"permission": "task", "pattern": "*", "action": "deny"}],
        },
    )
    model = {"modelID": child["model"]["id"], "providerID": child["model"]["providerID"]}
    known = {"parentSessionId": run.session_id, "sessionId": child["id"], "model": model}
    call.start(title=title, metadata=known)
    parts = [{"type": "text", "text": call.args["prompt"]}]
    runs.write_prompt(child, {"parts": parts, "agent": agent}, new_id("msg"))
    run.children.append(child["id"])
    sub = runs.begin(child)
    await asyncio.wait({sub.task})
    run.children.remove(child["id"])
    if sub.was_aborted:
        text = "Task cancelled"
        raise ToolError(text)
    if sub.rejection is not None:
        text = f"Subagent failed (task_id: {child['id']}): {sub.rejection}"
        raise ToolError(text)
    last = runs.world.messages(child["id"])[-1:]
    said = "".join(part.get("text", "") for message in last for part in message["parts"])
    output = f'<task id="{child["id"]}" state="completed">\n{said}\n</task>'
    return output, title, {**known, "truncated": False}


async def _question(call: ToolCall) -> tuple[str, str, Json]:
    questions = call.args["questions"]
    entry = {"sessionID": call.run.session_id, "questions": questions, "tool": call.place}
    ask = call.run.runs.asks.open("question", call.run.directory, **entry)
    call.start()
    answers = await ask.answered
    pairs = zip(questions, answers, strict=False)
    said = ", ".join(f'"{item["question"]}"="{", ".join(given)}"' for item, given in pairs)
    output = f"User has answered your questions: {said}. You can now continue."
    return output, f"Asked {len(questions)} question", {"answers": answers, "truncated": False}


async def _write(call: ToolCall) -> tuple[str, str, Json]:
    path = await _leave_for(call)
    exists = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if exists else None
    path.write_text(str(call.args["content"]), encoding="utf-8")
    call.run.changes.note(path, before, str(call.args["content"]))
    metadata = {"filepath": str(path), "exists": exists, "truncated": False}
    return "Wrote file successfully.", str(path).lstrip("/"), metadata


async def _edit(call: ToolCall) -> tuple[str, str, Json]:
    path = await _leave_for(call)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = str(call.args["oldString"]), str(call.args["newString"])
    if old not in text:
        message = "Could not find oldString in the file."
        raise ToolError(message)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    call.run.changes.note(path, text, text.replace(old, new, 1))
    return "Edit applied successfully.", str(path).lstrip("/"), {"truncated": False}


async def _leave_for(call: ToolCall) -> Path:
    path = Path(call.run.directory, str(call.args["filePath"]))
    if not path.is_relative_to(call.run.directory):
        around = f"{path.parent}/*"
        await call.ask("external_directory", [around], [around], filepath=str(path))
    await call.ask("edit", [str(path).lstrip("/")], ["*"], filepath=str(path))
    call.start()
    return path


async def _read(call: ToolCall) -> tuple[str, str, Json]:
    path = Path(call.run.directory, str(call.args["filePath"]))
    await call.ask("read", [str(path)], ["*"], filepath=str(path))
    call.start()
    if not path.exists():
        message = f"File not found: {path}"
        raise ToolError(message)
    return path.read_text(encoding="utf-8"), str(path).lstrip("/"), {"truncated": False}


async def _webfetch(call: ToolCall) -> tuple[str, str, Json]:
    url = str(call.args["url"])
    await call.ask("webfetch", [url], ["*"], url=url)
    call.start()
    return "", url, {"truncated": False}


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        "bash": _bash,
        "task": _task,
        "question": _question,
        "write": _write,
        "edit": _edit,
        "read": _read,
        "webfetch": _webfetch,
    }
)
