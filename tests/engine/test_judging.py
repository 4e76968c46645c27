"""What is said of schemas and answers; and that what would run for ever is ended from outside."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from opencode_mcp.engine import judge_process
from opencode_mcp.engine.judge_process import JudgeProcess, NoJudgementError
from opencode_mcp.engine.judging import MEMORY_BYTES, check, judge
from opencode_mcp.engine.schema_rules import PATH_CHARS
from tests.real.support.sandbox import REPOSITORY

ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
    },
    "required": ["id", "kind"],
    "additionalProperties": False,
}
LIST = {"type": "array", "items": {"$ref": "#/$defs/item"}, "$defs": {"item": ITEM}}
TREE = {
    "type": "object",
    "properties": {"below": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}},
    "required": ["name"],
}
VALID: dict[str, tuple[dict[str, Any], Any]] = {
    "object": (ITEM, {"id": 1, "kind": "a", "tags": ["x"]}),
    "list": (LIST, [{"id": 1, "kind": "b"}]),
    "tree": (TREE, {"name": "x", "below": [{"name": "y", "below": []}]}),
    "anything": ({}, [None]),
    "null": ({"type": "null"}, None),
    "own-id": ({"$id": "http://127.0.0.1:9/x", **LIST}, [{"id": 1, "kind": "b"}]),
    "own-id-that-is-none": ({"$id": "http://[", **LIST}, [{"id": 1, "kind": "b"}]),
    "own-id-of-the-dialect": (
        {"$id": "https://json-schema.org/draft/2020-12/schema", **LIST},
        [{"id": 1, "kind": "b"}],
    ),
    "anchor": ({"$ref": "#i", "$defs": {"x": {"$anchor": "i", "type": "integer"}}}, 7),
    "format-is-a-note": ({"properties": {"at": {"format": "date-time"}}}, {"at": "noon"}),
}
UNFIT: dict[str, tuple[dict[str, Any], Any, str]] = {
    "missing": (ITEM, {"id": 1}, "#/kind is missing (#/required of the schema)"),
    "both-missing": (ITEM, {}, "#/id is missing (#/required of the schema); #/kind is missing"),
    "kind": (ITEM, {"id": "hunter2", "kind": "a"}, "#/id does not fit #/properties/id/type of"),
    "choice": (ITEM, {"id": 1, "kind": "hunter2"}, "#/kind does not fit #/properties/kind/enum"),
    "extra": (ITEM, {"id": 1, "kind": "a", "hunter2": 0}, "# does not fit #/additionalProperties"),
    "pattern": (
        ITEM,
        {"id": 1, "kind": "a", "tags": ["hunter2"]},
        "#/tags/0 does not fit #/properties/tags/items/pattern",
    ),
    "by-reference": (LIST, [{"id": 0, "kind": "a"}], "#/0/id does not fit #/items/properties/id"),
    "many": ({"items": {"type": "null"}}, [1, 2, 3, 4], "#/2 does not fit #/items/type of the"),
    "never": ({"not": {}}, "hunter2", "# does not fit #/not of the schema"),
}
FAULTY: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"type": "objekt"}, "#/type"),
    "nested": ({"properties": {"a": {"minimum": "1"}}}, "#/properties/a/minimum"),
    "pattern": ({"properties": {"a": {"pattern": "("}}}, "#/properties/a/pattern"),
    "required": ({"required": "a"}, "#/required"),
    "to-nowhere": ({"items": {"$ref": "#/$defs/x"}}, "#/items/$ref"),
    "to-no-anchor": ({"items": {"$ref": "#x"}}, "#/items/$ref"),
}

_DOUBLING: dict[str, Any] = {
    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)
}
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "pattern": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, json.dumps({"a": "a" * 60 + "!"})),
    "pattern-of-names": ({"patternProperties": {"^(a+)+$": {}}}, json.dumps({"a" * 60 + "!": 1})),
    "doubling": ({"$ref": "#/$defs/d0", "$defs": {**_DOUBLING, "d60": {}}}, "{}"),
    "no-end": ({"$ref": "#"}, "{}"),
    "unique": ({"uniqueItems": True}, json.dumps([{"n": n} for n in range(100_000)])),
    "data-as-schema": (
        {"const": {"$ref": "http://127.0.0.1:PORT/x"}, "not": {"$ref": "#/const"}},
        "{}",
    ),
}
#: what a search that looks again and again at the same text would take minutes for
LONG = {
    "openings": "[" * 1_000_000,
    "keys": '{"a":' * 200_000,
    "broken-objects": '{"a":1 ' * 100_000,
    "broken-arrays": "[1a" * 100_000,
    "quotes": '["' * 300_000,
    "fences": "```\n" * 200_000,
    "blocks": "```\n[1\n```\n" * 30_000,
    "label": "```" + "a" * 1_000_000 + "`",
    "lines": "\n" * 1_000_000 + "{",
}


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> JudgeProcess:
    """Give a judge that a busy machine does not put off."""
    monkeypatch.setattr(judge_process, "LIMIT_S", 100.0)
    monkeypatch.setattr(judge_process, "CPU_S", 60.0)
    return JudgeProcess()


@pytest.mark.parametrize(("schema", "value"), VALID.values(), ids=VALID)
def test_an_answer_that_fits_is_valid(schema: dict[str, Any], value: object) -> None:
    assert check(schema) == {}
    report = judge(schema, f"So:\n```json\n{json.dumps(value)}\n```")
    assert report == {"status": "valid", "json": json.dumps(value, separators=(",", ":"))}


@pytest.mark.parametrize(("schema", "value", "told"), UNFIT.values(), ids=UNFIT)
def test_an_answer_that_does_not_fit_is_told_by_places(
    schema: dict[str, Any], value: object, told: str
) -> None:
    report = judge(schema, json.dumps(value))
    assert (report["status"], report["code"]) == ("invalid", "SCHEMA_MISMATCH")
    assert told in report["message"]
    assert "hunter2" not in report["message"].replace("#/hunter2", "")
    assert "json" not in report


def test_the_message_is_bounded_whatever_does_not_fit() -> None:
    items: list[dict[str, object]] = [{}] * 50
    value = {"x" * 5000: items}
    schema = {"additionalProperties": {"items": {"required": ["z" * 999]}}}
    report = judge(schema, json.dumps(value))
    assert report["message"].endswith("; and more")
    assert len(report["message"]) < 10 * PATH_CHARS


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        ("I could not.", "missing", "NO_JSON"),
        ('{"a": 1,}', "invalid", "MALFORMED_JSON"),
        ("[" * 150 + "]" * 150, "invalid", "NESTED_TOO_DEEP"),
    ],
)
def test_an_answer_without_a_value_is_told_apart(answer: str, status: str, code: str) -> None:
    report = judge({}, answer)
    assert (report["status"], report["code"]) == (status, code)


@pytest.mark.parametrize(("schema", "where"), FAULTY.values(), ids=FAULTY)
def test_what_is_no_schema_is_told_by_its_place(schema: dict[str, Any], where: str) -> None:
    assert check(schema)["where"] == where


@pytest.mark.parametrize(("schema", "answer"), HOSTILE.values(), ids=HOSTILE)
async def test_what_would_not_end_is_ended(
    judges: JudgeProcess, schema: dict[str, Any], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a pattern cannot be stopped from within; nothing is fetched from anywhere."""
    monkeypatch.setattr(judge_process, "CPU_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        text = json.dumps(schema).replace("PORT", str(listener.getsockname()[1]))
        with pytest.raises(NoJudgementError) as fault:
            await judges.run(text, answer)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert fault.value.lasting


@pytest.mark.parametrize("answer", LONG.values(), ids=LONG)
async def test_a_long_answer_is_read_in_bounded_time(judges: JudgeProcess, answer: str) -> None:
    report = await judges.run("{}", answer)
    assert report["status"] in {"missing", "invalid"}


async def test_a_machine_that_is_too_busy_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_process, "LIMIT_S", 0.0)
    with pytest.raises(NoJudgementError) as fault:
        await JudgeProcess().run("{}", "{}")
    assert not fault.value.lasting


async def test_a_megabyte_of_values_is_judged(judges: JudgeProcess) -> None:
    value = [{"id": n + 1, "kind": "a", "tags": ["tag"]} for n in range(28_000)]
    text = json.dumps(value, separators=(",", ":"))
    assert len(text) > 1_000_000
    report = await judges.run(json.dumps(LIST), f"So:\n```json\n{text}\n```")
    assert report == {"status": "valid", "json": text}


def test_the_bounds_in_the_documentation_are_the_real_ones() -> None:
    page = (REPOSITORY / "docs" / "structured-output.md").read_text(encoding="utf-8")
    cpu_s, limit_s = judge_process.CPU_S, judge_process.LIMIT_S
    space = f"{MEMORY_BYTES // 1024**3} GiB of address space"
    assert f"{cpu_s:g} s of processor time, {space}, {limit_s:g} s with the wait" in page


def test_the_server_itself_never_loads_what_judges() -> None:
    """Ours: it costs 0.1 s, and hostile schemas stay out of this process."""
    parts = ("app.runtime", "callers.server", "callers.batching", "engine.engine")
    loads = "; ".join(f"import opencode_mcp.{part}" for part in parts)
    says = "import sys; print({'jsonschema', 'opencode_mcp.engine.judging'} & {*sys.modules})"
    told = subprocess.run(
        [sys.executable, "-c", f"{loads}; {says}"], capture_output=True, text=True, check=True
    )
    assert told.stdout == "set()\n"


@pytest.mark.parametrize("target", ["#/nothing", "#/enum/x", "#/type/x", "#/enum/7"])
def test_a_reference_that_leads_nowhere_is_named(target: str) -> None:
    fault = check({"enum": [1], "type": "integer", "$ref": target})
    assert fault["where"].endswith("/$ref")
    assert "does not have" in fault["why"]
