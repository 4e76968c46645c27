"""`opencode-info` on the twin: models, agents, roots, pages, and an OpenCode that is in trouble."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.callers.arguments import StartArguments
from tests.twin import Body, Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

PROVIDERS = r"^/config/providers$"
#: what OpenCode tells of a provider and nobody else must hear
_MARK = "marked-secret"


def catalogue(count: int, *, provider: str = "big", **more: object) -> bytes:
    """Return a list of providers with so many models of one."""
    models = {f"m{n:04}": {"id": f"m{n:04}", **more} for n in range(count)}
    given = {"id": provider, "options": {"apiKey": _MARK, "baseURL": f"https://u:{_MARK}@x/"}}
    return json.dumps({"providers": [{**given, "models": models}], "default": {}}).encode()


async def info(bridge: Bridge, section: str, **more: object) -> Answer:
    """Ask, and expect an answer."""
    answer = await bridge.call("opencode-info", section=section, **more)
    assert not answer.is_error, answer.text
    assert (answer.structured["kind"], answer.status) == ("info", "ok")
    return answer


async def pages(bridge: Bridge, section: str, **more: object) -> list[Any]:
    """Read a whole list as a caller does: nextOffset and snapshotId, while there is more."""
    found: list[Any] = []
    said: dict[str, Any] = (await info(bridge, section, **more)).structured
    while True:
        assert len(found) == said["offset"], "the pages join"
        found += said[section]
        assert said["hasMore"] == ("nextOffset" in said) == (len(found) < said["total"])
        if not said["hasMore"]:
            return found
        pin = {"offset": said["nextOffset"], "snapshot_id": said["snapshotId"]}
        said = (await info(bridge, section, **more, **pin)).structured


async def test_a_model_is_told_with_what_a_caller_chooses_by(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    model = {
        "id": "a/b",
        "name": "Big\nmodel",
        "limit": {"context": 200_000, "output": 32_000},
        "capabilities": {"toolcall": False},
        "variants": {"high": {"reasoningEffort": "high"}, "low": {}},
        "options": {"apiKey": _MARK},
        "headers": {"authorization": _MARK},
    }
    providers = [{"id": "one", "options": {"apiKey": _MARK}, "models": {"a/b": model}}]
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
    assert _MARK not in json.dumps(answer.structured)


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


@pytest.mark.parametrize("limit", [1, 7, 20, 100])
async def test_the_pages_of_a_list_join_to_the_whole(
    bridge: Bridge, twin: Twin, limit: int
) -> None:
    read = twin.fail(Body(catalogue(60)), path=PROVIDERS, times=None)
    found = await pages(bridge, "models", limit=limit)
    assert [model["id"] for model in found] == [f"big/m{n:04}" for n in range(60)]
    assert len(read.hits) == 1, "the other pages are from the snapshot"


@pytest.mark.parametrize(
    "name", ["x" * 2_000, "\x00" * 2_000, "😀" * 2_000], ids=["ascii", "nul", "emoji"]
)
async def test_a_page_of_the_largest_entries_stays_small_and_loses_none(
    bridge: Bridge, twin: Twin, name: str
) -> None:
    """Contract §3: the bridge fails an answer beyond 45,000 characters; no id is cut."""
    long = "".join(character for character in name if character.isprintable())[:150]
    variants: dict[str, dict[str, str]] = {f"{long}{n:02}": {} for n in range(30)}
    body = catalogue(300, provider=f"big{long[:40]}", name=name, variants=variants)
    twin.fail(Body(body), path=PROVIDERS, times=None)
    found = await pages(bridge, "models", limit=100)
    assert [model["id"][-5:] for model in found] == [f"m{n:04}" for n in range(300)]
    assert {len(model["variants"]) for model in found} == {len(found[0]["variants"])}
    assert set(found[0]["variants"]) <= set(variants), "no name is cut"


async def test_variants_that_do_not_fit_are_said_to_be_missing(bridge: Bridge, twin: Twin) -> None:
    variants: dict[str, dict[str, str]] = {f"{'v' * 150}{n:02}": {} for n in range(30)}
    twin.fail(Body(catalogue(1, variants=variants)), path=PROVIDERS)
    said = (await info(bridge, "models")).structured
    assert said["truncated"]
    assert said["omittedFields"] == ["models.variants"]
    assert 0 < len(said["models"][0]["variants"]) < 30


async def test_a_list_that_changes_does_not_shift_under_its_reader(
    bridge: Bridge, twin: Twin
) -> None:
    twin.fail(Body(catalogue(30)), path=PROVIDERS)
    first = (await info(bridge, "models")).structured
    twin.fail(Body(catalogue(31, provider="aaa")), path=PROVIDERS, times=None)
    pin = {"offset": 20, "snapshot_id": first["snapshotId"]}
    second = (await info(bridge, "models", **pin)).structured
    assert [model["id"] for model in second["models"]] == [f"big/m{n:04}" for n in range(20, 30)]
    assert "availability" not in second, "OpenCode was not asked"
    fresh = (await info(bridge, "models")).structured
    assert fresh["snapshotId"] != first["snapshotId"]
    assert fresh["models"][0]["id"] == "aaa/m0000"


async def test_a_snapshot_outlives_the_process_while_the_list_is_the_same(
    bridges: Bridges, twin: Twin
) -> None:
    read = twin.fail(Body(catalogue(30)), path=PROVIDERS, times=None)
    before = await bridges.attached()
    first = (await info(before, "models")).structured
    await before.close()
    after = await bridges.attached()
    pin = {"offset": 20, "snapshot_id": first["snapshotId"]}
    second = (await info(after, "models", **pin)).structured
    assert (len(read.hits), len(second["models"])) == (2, 10)
    read.release()
    twin.fail(Body(catalogue(31)), path=PROVIDERS)
    other = await bridges.attached()
    gone = await other.call("opencode-info", section="models", **pin)
    assert gone.error == "SNAPSHOT_EXPIRED"
    assert first["snapshotId"] in gone.text


async def test_a_snapshot_is_of_its_folder_its_section_and_its_provider(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    body = json.loads(catalogue(3, provider="one"))
    body["providers"] += json.loads(catalogue(2, provider="two"))["providers"]
    twin.fail(Body(json.dumps(body).encode()), path=PROVIDERS, times=2)
    more = {"section": "models", "cwd": str(project)}
    pin = (await info(bridge, **more, provider="one")).structured["snapshotId"]
    for wrong in (
        {**more, "provider": "two"},
        {"section": "models", "provider": "scripted"},
        {"section": "agents"},
        {"section": "roots"},
    ):
        refused = await bridge.call("opencode-info", snapshot_id=pin, **wrong)
        assert refused.error == "SNAPSHOT_EXPIRED", wrong
    elsewhere = await bridge.call(
        "opencode-info", section="models", provider="one", snapshot_id=pin
    )
    assert elsewhere.error == "INVALID_ARGUMENT", "the default folder has no such provider"
    assert (await info(bridge, **more, provider="one", snapshot_id=pin)).structured["total"] == 3


async def test_beyond_the_end_there_is_an_empty_page(bridge: Bridge) -> None:
    answer = await info(bridge, "models", offset=1000)
    assert (answer.structured["models"], answer.structured["hasMore"]) == ([], False)
    assert answer.structured["total"] > 0


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


@pytest.mark.parametrize(("section", "path"), [("models", PROVIDERS), ("agents", r"^/agent$")])
async def test_calls_that_come_together_read_a_list_twice_at_most(
    bridge: Bridge, twin: Twin, section: str, path: str
) -> None:
    await info(bridge, "server")  # connected: what is counted is the reads of the list
    since = len(twin.requests)
    slow = twin.fail(Hang(), path=path)
    calls = [asyncio.create_task(info(bridge, section)) for _ in range(12)]
    await asyncio.wait_for(slow.reached.wait(), 5)
    await info(bridge, "server")  # calls begin in order: the twelve are under way
    slow.release()
    answers = await asyncio.gather(*calls)
    assert len({answer.structured["snapshotId"] for answer in answers}) == 1
    reads = [seen for seen in twin.requests[since:] if re.search(path, seen.path)]
    assert len(reads) <= 2


async def test_a_catalogue_of_many_megabytes_is_listed(bridge: Bridge, twin: Twin) -> None:
    twin.fail(Body(catalogue(6_000, name="x" * 1_000)), path=PROVIDERS)
    said = (await info(bridge, "models", limit=100)).structured
    assert (said["total"], len(said["models"])) == (6_000, 100)
    again = await info(bridge, "models", offset=5_990, snapshot_id=said["snapshotId"])
    assert len(again.structured["models"]) == 10


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
