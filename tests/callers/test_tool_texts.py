"""What the tools say of themselves is true, short, scored, and the same in docs/tools.md."""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from opencode_mcp import errors, opencode_errors
from opencode_mcp.callers import wire_parts
from opencode_mcp.callers.output_pages import DEFAULT_LIST_PAGE, DEFAULT_TEXT_PAGE
from opencode_mcp.callers.tool_table import CODEX_NAMES, NAMES
from opencode_mcp.callers.wire import Result
from opencode_mcp.engine.catalogue import LOOK_S
from opencode_mcp.engine.repeating import REMEMBERED
from opencode_mcp.settings import Settings
from scripts import tool_texts

if TYPE_CHECKING:
    from mcp_types import Tool

_QUESTIONS = ["purpose", "when", "behaviour", "parameters", "completeness", "conciseness"]
_MAX_CHARS = 1_200
#: names in texts that are neither a result's nor an argument's: OpenCode's, and MCP's
_FOREIGN = {"build", "plan", "provider/model", "id", "kind", "opencode_unreachable"}


@pytest_asyncio.fixture
async def tools() -> list[Tool]:
    return await tool_texts.list_tools(CODEX_TOOLS="true")


def _properties(tool: Tool) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tool.input_schema["properties"]
    return found


def _texts(tools: list[Tool]) -> list[tuple[str, str]]:
    """Return each text with the name of what it describes."""
    return [
        *((tool.name, tool.description or "") for tool in tools),
        *(
            (f"{tool.name} {name}", prop["description"])
            for tool in tools
            for name, prop in _properties(tool).items()
        ),
    ]


def _error_names() -> set[str]:
    return {
        kind.name
        for module in (errors, opencode_errors)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, errors.OpencodeMcpError)
    } | {"CLEANUP_UNCONFIRMED"}


def test_the_documented_texts_are_the_real_ones(tools: list[Tool]) -> None:
    page = tool_texts.PAGE.read_text(encoding="utf-8")
    assert tool_texts.with_sections(page, tools) == page, "run `make fmt`"


def test_each_tool_is_scored_on_each_question_with_a_reason() -> None:
    page = tool_texts.PAGE.read_text(encoding="utf-8")
    for name in NAMES + CODEX_NAMES:
        _, found, rest = page.partition(f"\n## {name}\n")
        assert found
        rows = re.findall(
            r"^\| (\w+) \| (\d) \| (.*) \|$", rest.partition("\n## ")[0], re.MULTILINE
        )
        assert [question for question, _, _ in rows] == _QUESTIONS, name
        for question, score, why in rows:
            assert 1 <= int(score) <= 5
            assert len(why) > 20, f"{name}: {question}"


def test_texts_are_short_enough_to_be_read(tools: list[Tool]) -> None:
    for tool in tools:
        assert len(tool.description or "") <= _MAX_CHARS, tool.name
        for name, prop in _properties(tool).items():
            assert 20 < len(prop["description"]) <= 300, f"{tool.name} {name}"


def test_every_name_in_a_text_exists(tools: list[Tool]) -> None:
    """A renamed tool, argument, field, status or error would leave a text that leads astray."""
    shapes = [kind for _, kind in inspect.getmembers(wire_parts, inspect.isclass)]
    fields = {name for kind in [Result, *shapes] for name in getattr(kind, "__annotations__", {})}
    arguments = {name for tool in tools for name in _properties(tool)}
    values = {v for tool in tools for p in _properties(tool).values() for v in p.get("enum", [])}
    answers = _words(tools[0].output_schema)
    known = fields | arguments | values | answers | set(NAMES + CODEX_NAMES) | _FOREIGN
    for where, text in _texts(tools):
        for word in re.findall(r"`([^`]+)`", text):
            assert word in known, f"{where}: {word}"
        for word in re.findall(r"(?<![\w-])[a-z]+(?:-[a-z]+)+(?![\w-])", text):
            assert word in known | {"sub-sessions"}, f"{where}: {word}"
        for word in re.findall(r"\bopencode(?:-[a-z]+)+", text):
            assert word in NAMES, f"{where}: {word}"
        for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text):
            assert word in _error_names(), f"{where}: {word}"


def test_a_value_that_a_text_explains_is_one_that_may_be_given(tools: list[Tool]) -> None:
    """As in "never: rejected at once"; what is renamed would lead astray."""
    explained = 0
    for tool in tools:
        for name, prop in _properties(tool).items():
            found = set(re.findall(r"(?:^|[.;] )`?([a-z-]+)`?: ", prop["description"]))
            assert found <= set(prop.get("enum", [])), f"{tool.name} {name}"
            explained += len(found)
    assert explained > 10


def test_every_number_in_a_text_is_the_real_one(tools: list[Tool]) -> None:
    """A default or a limit that is named is the schema's, or that of a setting."""
    named = ("approval_timeout_seconds", "cleanup_timeout_seconds", "turn_timeout_seconds")
    common = {
        *(Settings.model_fields[name].default for name in named),
        *(REMEMBERED.total_seconds() / 3600, LOOK_S, DEFAULT_TEXT_PAGE, DEFAULT_LIST_PAGE),
        *(0, 1, 2020, 12),  # nothing at all; the first turn; the JSON Schema of 2020-12
    }
    for tool in tools:
        limits = {
            name: {int(n) for n in re.findall(r"\d+", json.dumps({**p, "description": ""}))}
            for name, p in _properties(tool).items()
        }
        assert _numbers(tool.description or "") <= common.union(*limits.values()), tool.name
        for name, prop in _properties(tool).items():
            assert _numbers(prop["description"]) <= common | limits[name], f"{tool.name} {name}"


def test_a_default_that_a_text_names_is_the_schemas(tools: list[Tool]) -> None:
    for tool in tools:
        for name, prop in _properties(tool).items():
            for said in re.findall(r"Default `?([\w-]+)", prop["description"]):
                paged = str(DEFAULT_TEXT_PAGE) if tool.name == "opencode-output" else None
                assert said == str(prop.get("default", paged)), f"{tool.name} {name}"


#: those that the texts or the arguments' defaults name, at their longest
LONGEST = {
    "APPROVAL_TIMEOUT_SECONDS": "604800",
    "TURN_TIMEOUT_SECONDS": "604800",
    "MAX_TURN_TIMEOUT_SECONDS": "604800",
    "CLEANUP_TIMEOUT_SECONDS": "600",
    "MAX_OUTPUT_CHARS": "40000",
    "DEFAULT_WAIT_SECONDS": "600",
    "DEFAULT_SANDBOX": "danger-full-access",
    "MAX_SANDBOX": "danger-full-access",
    "DEFAULT_APPROVAL_POLICY": "on-request",
}


@pytest.mark.parametrize("on_cancel", ["abort", "keep"])
@pytest.mark.parametrize("action", ["delete", "archive"])
@pytest.mark.parametrize("more", [{}, LONGEST], ids=["defaults", "longest"])
async def test_over_http_with_all_tools_the_listing_stays_small_too(
    on_cancel: str, action: str, more: dict[str, str]
) -> None:
    """The largest there is: what a stateless connection costs is said as well."""
    listed = await tool_texts.list_tools(
        CODEX_TOOLS="true", TRANSPORT="http", ON_CALL_CANCEL=on_cancel, END_ACTION=action, **more
    )
    schemas = [
        json.dumps(t.input_schema, separators=(",", ":"), ensure_ascii=False) for t in listed
    ]
    texts = [f"{tool.name}{tool.description}" for tool in listed]
    assert len("".join([*texts, *schemas]).encode()) <= 22_000


async def test_a_changed_setting_is_in_the_texts() -> None:
    changed = await tool_texts.list_tools(
        APPROVAL_TIMEOUT_SECONDS="77",
        CLEANUP_TIMEOUT_SECONDS="13",
        TURN_TIMEOUT_SECONDS="771",
        END_ACTION="archive",
        ON_CALL_CANCEL="keep",
        CODEX_TOOLS="true",
    )
    said = {tool.name: tool.description or "" for tool in changed}
    assert "within 77 s" in said["opencode-approve"]
    assert "within 13 s" in said["opencode-end"]
    assert "defaults to `archive`" in said["opencode-end"]
    for name in ("opencode", "opencode-reply", "codex", "codex-reply"):
        assert "Cancelling this call lets its turn run on" in said[name]
    for name in ("codex", "codex-reply"):
        assert "771 s" in said[name]


def _words(schema: object) -> set[str]:
    """Return every value that a field of a result may be, where there are only some."""
    if isinstance(schema, list):
        return set().union(*map(_words, schema))
    if not isinstance(schema, dict):
        return set()
    return {*schema.get("enum", []), *_words(list(schema.values()))}


def _numbers(text: str) -> set[int]:
    return {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)}
