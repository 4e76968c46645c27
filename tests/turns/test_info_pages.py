"""`opencode-info` on the twin, page by page: all of a long list, and it stays one list."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.turns.infos import PROVIDERS, catalogue, info, pages
from tests.twin import Body, Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


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
