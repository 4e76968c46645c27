"""`opencode-info` on the twin: models, agents, roots, and an OpenCode that is in trouble."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers.arguments import StartArguments
from tests.turns.infos import MARK, PROVIDERS, catalogue, info, pages
from tests.twin import Body, Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_a_model_is_told_with_what_a_caller_chooses_by(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    model = {
        "id": "a/b",
        "name": "Big\nmodel",
        "limit": {"context": 200_000, "output": 32_000},
        "capabilities": {"toolcall": False},
        "variants": {"high": {"reasoningEffort": "high"}, "low": {}},
        "options": {"apiKey": MARK},
        "headers": {"authorization": MARK},
    }
    providers = [{"id": "one", "options": {"apiKey": MARK}, "models": {"a/b": model}}]
    twin.fail(Body(json.dumps({"providers": providers}).encode()), path=PROVIDERS)
    answer = await info(bridge, "models", cwd=str(project))
    assert answer.structured["models"] == [
        {
            "id": "one/a/b",
            "contextTokens": 200_000,
            "outputTokens": 32_000,
            "variants": ["high", "low"],
            "toolCalls": False,
        }
    ]
    assert "Big model" in answer.text
    assert (answer.structured["availability"], answer.structured["directory"]) == (
        "ok",
        str(project),
    )
    for told in ("one/a/b", "Big model", "200000", "32000", "high, low", "cannot call tools"):
        assert told in answer.text
    assert MARK not in json.dumps(answer.structured)


async def test_what_a_provider_does_not_say_or_says_strangely_is_left_out(
    bridge: Bridge, twin: Twin
) -> None:
    """Every turn's admission reads the same list: a plug-in must not make it unreadable."""
    strange = {
        "name": 5,
        "limit": {"context": "many", "output": True},
        "capabilities": {"toolcall": "yes"},
        "variants": ["high"],
    }
    models = {
        "bare": {"id": "bare"},
        "strange": {"id": "strange", **strange},
        "none": {"id": "none", "limit": None, "capabilities": None, "variants": None},
        "zero": {"id": "zero", "limit": {"context": 0, "output": -1}},
    }
    body = json.dumps({"providers": [{"id": "p", "models": models}]}).encode()
    twin.fail(Body(body), path=PROVIDERS)
    found = await pages(bridge, "models")
    assert found == [{"id": f"p/{name}", "variants": []} for name in sorted(models)]


async def test_only_models_that_a_caller_can_name_are_offered(bridge: Bridge, twin: Twin) -> None:
    names = ["fine", "a b", "x" * 200, "", "line\nbreak", "bell\a", "übermodell", "a/b/c"]
    models = {name: {"id": name} for name in names}
    body = {"providers": [{"id": "p", "models": models}, {"id": "q/r", "models": models}]}
    twin.fail(Body(json.dumps(body).encode()), path=PROVIDERS)
    found = [model["id"] for model in await pages(bridge, "models")]
    assert found == ["p/a/b/c", "p/fine", "p/übermodell"]
    for model in found:
        assert StartArguments(prompt="x", model=model).model == model


async def test_only_agents_that_a_caller_may_name_are_offered(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Facts 11.4: hidden helpers are listed as primary. A sub-agent is for agents."""
    agents = [
        {"name": "build", "mode": "primary", "hidden": None, "description": "Works.\n- really"},
        {"name": "plan", "mode": "all", "model": {"providerID": "p", "modelID": "m/1"}},
        {"name": "helper", "mode": "primary", "hidden": True},
        *({"name": name, "mode": "primary"} for name in ("compaction", "summary", "title")),
        {"name": "general", "mode": "subagent"},
        {"name": "future", "mode": "something-else"},
        {"name": "old", "description": None, "mode": None, "model": None},
    ]
    twin.fail(Body(json.dumps(agents).encode()), path=r"^/agent$")
    answer = await info(bridge, "agents", cwd=str(project))
    assert answer.structured["agents"] == [
        {"name": "build", "description": "Works. - really"},
        {"name": "old"},
        {"name": "plan", "model": "p/m/1"},
    ]
    assert "build · Works. - really" in answer.text
    assert "general" not in answer.text


async def test_what_is_offered_can_be_used(bridge: Bridge, project: Path) -> None:
    models = await pages(bridge, "models", cwd=str(project))
    agents = await pages(bridge, "agents", cwd=str(project))
    assert {agent["name"] for agent in agents} == {"build", "plan"}
    for agent in agents:
        answer = await bridge.start(
            "SAY:x", project, model=models[0]["id"], agent=agent["name"], wait_seconds=20
        )
        assert answer.status == "completed", answer.text


async def test_models_can_be_those_of_one_provider(bridge: Bridge, twin: Twin) -> None:
    body = json.loads(catalogue(3, provider="one"))
    body["providers"] += json.loads(catalogue(2, provider="one-more"))["providers"]
    twin.fail(Body(json.dumps(body).encode()), path=PROVIDERS, times=None)
    found = await pages(bridge, "models", provider="one")
    assert [model["id"] for model in found] == ["one/m0000", "one/m0001", "one/m0002"]
    for unknown in ("on", "one/m0000", "one-mor"):
        refused = await bridge.call("opencode-info", section="models", provider=unknown)
        assert refused.error == "INVALID_ARGUMENT"
        assert unknown in refused.text
        assert "one-more" in refused.text


async def test_each_folder_is_asked_for_itself(bridge: Bridge, twin: Twin, project: Path) -> None:
    since = len(twin.requests)
    await info(bridge, "models", cwd=str(project))
    await info(bridge, "agents")
    asked = [(seen.path, seen.query["directory"]) for seen in twin.requests[since:] if seen.query]
    assert asked == [
        ("/config/providers", str(project)),
        ("/agent", str(project.parent)),
    ]


@pytest.mark.parametrize("section", ["models", "agents"])
async def test_a_folder_outside_the_roots_is_refused_and_nothing_is_asked(
    bridge: Bridge, twin: Twin, project: Path, section: str
) -> None:
    (project / "link").symlink_to("/etc")
    since = len(twin.requests)
    for cwd in ("/etc", str(project / "link"), str(project / "missing")):
        answer = await bridge.call("opencode-info", section=section, cwd=cwd)
        assert answer.error == "PATH_NOT_ALLOWED", answer.text
    assert [line for line in twin.lines(since) if "config" in line or "agent" in line] == []


@pytest.mark.parametrize("section", ["models", "agents"])
async def test_an_opencode_that_cannot_be_asked_is_an_error_with_what_to_do(
    bridges: Bridges, twin: Twin, section: str
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="1")
    await info(bridge, "server")
    twin.fail(Status(503), path=r"^/(agent|config/providers)$", times=None)
    answer = await bridge.call("opencode-info", section=section)
    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE")
    assert answer.structured["error"]["retryable"]


async def test_the_roots_are_told_without_opencode(
    bridges: Bridges, twin: Twin, tmp_path: Path, project: Path
) -> None:
    others = [tmp_path / f"root{n:02}" for n in range(30)]
    for folder in others:
        folder.mkdir()
    roots = [str(path.resolve()) for path in [project, *others]]
    bridge = await bridges.attached(
        ALLOWED_ROOTS=":".join([*roots, roots[0]]), DEFAULT_CWD=str(project)
    )
    since = len(twin.requests)
    answer = await info(bridge, "roots")
    assert await pages(bridge, "roots", limit=4) == roots
    assert answer.structured["directory"] == str(project)
    assert roots[0] in answer.text
    assert twin.lines(since) == []


async def test_where_opencodes_own_folder_is_the_only_root_it_is_asked(
    bridges: Bridges, twin: Twin, tmp_path: Path
) -> None:
    own = str(tmp_path)  # where the twin runs
    bridge = await bridges.attached(ALLOWED_ROOTS="", DEFAULT_CWD="")
    answer = await info(bridge, "roots")
    assert (answer.structured["roots"], answer.structured["directory"]) == ([own], own)
    twin.fail(Status(503), path=r"^/path$", times=None)
    other = await bridges.attached(ALLOWED_ROOTS="", DEFAULT_CWD="", REQUEST_TIMEOUT_SECONDS="1")
    assert (await other.call("opencode-info", section="roots")).error == "OPENCODE_UNAVAILABLE"


async def test_a_server_that_is_attached_says_how_its_opencode_is(
    bridge: Bridge, twin: Twin
) -> None:
    answer = await info(bridge, "server")
    assert answer.structured["availability"] == "ok"
    assert answer.structured["server"]["opencodeVersion"] in answer.text
    assert twin.lines()[-1] == "GET /global/health"


async def test_a_server_whose_opencode_hangs_or_refuses_it_answers_all_the_same(
    bridges: Bridges, twin: Twin
) -> None:
    """Within `LOOK_S`, though a request may take 30 s: the suite's limit would cut that."""
    for fault, name in ((Hang(), "OPENCODE_UNAVAILABLE"), (Status(401), "OPENCODE_UNAUTHORIZED")):
        bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="600")
        planned = twin.fail(fault, path="health", times=None)
        answer = await asyncio.wait_for(info(bridge, "server"), 30)
        assert answer.structured["availability"] == "opencode_unreachable"
        assert "opencodeVersion" not in answer.structured["server"]
        assert name in answer.text
        planned.release()
        assert (await info(bridge, "server")).structured["availability"] == "ok"
