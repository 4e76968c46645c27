"""What a turn's answer holds as JSON, for turns that were begun with an `output-schema`.

OpenCode's own `format` is not used: a turn that does not meet it fails there (facts 2.6), and its
answer is lost. The schema stands in the instructions, and the answer is judged here, when the turn
is over. That never changes the turn's own status.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from cachetools import LRUCache

from opencode_mcp.engine.judge_process import JudgeProcess, NoJudgementError
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.engine.schema_rules import ROOT, refused
from opencode_mcp.errors import (
    OutputNotReadyError,
    OutputUnavailableError,
    SchemaNotCheckedError,
)

if TYPE_CHECKING:
    from opencode_mcp.engine.cancelling import Cancelled
    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.engine.overview import View
    from opencode_mcp.records import Turn

Seen = TypeVar("Seen", bound="View | Cancelled")

#: of an answer that is looked into
MAX_ANSWER_CHARS = 4 * 1024 * 1024
#: of all judgements that are kept, in characters of their values
_KEPT_CHARS = 16 * 1024 * 1024
#: schemas that were found to be good, by their digests
_KEPT_SCHEMAS = 256


@dataclass(frozen=True, slots=True)
class Structured:
    """What came of a turn's `output-schema`."""

    status: Literal["valid", "missing", "invalid"]
    #: the value as compact JSON, if it is valid
    json: str | None = None
    #: why it is not
    code: str | None = None
    message: str | None = None


_NO_TEXT = Structured("missing", code="NO_JSON", message="the turn has no text")
_TOO_LARGE = Structured(
    "invalid",
    code="ANSWER_TOO_LARGE",
    message=f"the answer has more than {MAX_ANSWER_CHARS:,} characters and was not looked into",
)
_UNFINISHED = Structured(
    "invalid",
    code="JUDGEMENT_UNFINISHED",
    message="whether the answer fits could not be found out: with this schema it takes too long,"
    " or breaks down",
)
_PUT_OFF = Structured(
    "invalid",
    code="NOT_JUDGED_YET",
    message="the answer could not be checked now: look again with opencode-status",
)


class Structures:
    """Checks schemas and judges answers; each answer once, however often it is asked for."""

    def __init__(self, closing: Closing) -> None:
        self._closing = closing
        self._process = JudgeProcess()
        self._good: LRUCache[str, bool] = LRUCache(_KEPT_SCHEMAS)
        self._known: LRUCache[str, Structured]
        self._known = LRUCache(_KEPT_CHARS, getsizeof=lambda one: 1_000 + len(one.json or ""))
        #: being judged now
        self._under_way: dict[str, asyncio.Task[Structured]] = {}

    async def close(self) -> None:
        """Stop what is being judged."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self, schema: str | None) -> None:
        """Raise InvalidOutputSchemaError unless it is a JSON Schema that can be worked with.

        SchemaNotCheckedError, one of those, where the machine was too busy to find out.
        """
        if schema is None or (key := _digest(schema)) in self._good:
            return
        try:
            fault = await self._process.run(schema, None)
        except NoJudgementError as error:
            if not error.lasting:
                msg = (
                    "output-schema could not be checked now: this machine is too busy. Nothing was"
                    " sent: send the same call again in a moment"
                )
                raise SchemaNotCheckedError(msg) from error
            raise refused(ROOT, "could not be checked: it takes too long") from error
        if fault:
            raise refused(fault["where"], fault["why"])
        self._good[key] = True

    async def of(self, turn: Turn, answer: str) -> Structured | None:
        """Return what the answer of a turn that is over holds; None: it was asked for nothing."""
        schema = turn.output_schema
        if schema is None:
            return None
        if not answer.strip():
            return _NO_TEXT
        if len(answer) > MAX_ANSWER_CHARS:
            return _TOO_LARGE
        key = _digest(schema, answer)
        known = self._known.get(key)
        if known is not None:
            return known
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._judge(key, schema, answer))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(task)

    async def completed(self, turn: Turn, verdict: Verdict) -> Verdict:
        """Return the verdict with what its answer holds, if the turn is over and has one.

        A turn that completed without a text lacks what was asked for; one that was cut short before
        it said anything was never to have it. Once this process exits, nothing is judged any more.
        """
        if not verdict.is_over or verdict.structured not in {None, _PUT_OFF}:
            return verdict
        if not verdict.answer.strip() and verdict.status is not TurnStatus.COMPLETED:
            return verdict
        found = await self._closing.until(self.of(turn, verdict.answer))
        return replace(verdict, structured=found)

    async def complete(self, keeper: Keeper) -> None:
        """Let a keeper's verdict tell what the answer holds, once its turn is over."""
        keeper.verdict = await self.completed(keeper.turn, keeper.verdict)

    async def seen(self, seen: Seen) -> Seen:
        """Return what was seen of a turn with what its answer holds."""
        if seen.turn is None or seen.verdict is None:
            return seen
        return replace(seen, verdict=await self.completed(seen.turn, seen.verdict))

    async def structured_text(self, turn: Turn, answer: str) -> str:
        """Return the value of a finished turn's answer as compact JSON.

        Raises OutputUnavailableError, which says why there is none; OutputNotReadyError where the
        machine was too busy to find out.
        """
        found = await self.of(turn, answer)
        if found == _PUT_OFF:
            msg = f"the answer of turn {turn.number} could not be checked now: repeat this call"
            raise OutputNotReadyError(msg, session_id=turn.session_id)
        if found is not None and found.json is not None:
            return found.json
        why = "it was begun without output-schema"
        if found is not None:
            why = f"it is {found.status} ({found.code}: {found.message})"
        msg = f"turn {turn.number} has no structured output: {why}"
        raise OutputUnavailableError(msg, session_id=turn.session_id)

    async def _judge(self, key: str, schema: str, answer: str) -> Structured:
        try:
            report = await self._process.run(schema, answer)
        except NoJudgementError as error:
            if not error.lasting:
                return _PUT_OFF
            found = _UNFINISHED
        else:
            status = cast('Literal["valid", "missing", "invalid"]', report["status"])
            found = Structured(
                status, report.get("json"), report.get("code"), report.get("message")
            )
        self._keep(key, found)
        return found

    def _keep(self, key: str, found: Structured) -> None:
        if self._known.getsizeof(found) <= self._known.maxsize:
            self._known[key] = found


def instructions_for(schema: str) -> str:
    """Return what a turn's agent is told of the schema that its answer is to fit."""
    return (
        "Your final answer will be read by a program. End it with exactly one JSON value that fits"
        " the JSON Schema below, in a fenced code block labelled json, and write no other block"
        " with that label. Strict JSON: no comments, no trailing commas. Do all other work as"
        f" usual before it.\n\nJSON Schema (2020-12):\n{schema}"
    )


def _digest(*texts: str) -> str:
    made = hashlib.sha256()
    for text in texts:
        made.update(f"{len(text)}:".encode())
        made.update(text.encode("utf-8", "surrogatepass"))
    return made.hexdigest()
