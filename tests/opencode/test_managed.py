"""Managed instances, on the real OpenCode: shared while used, and gone without a rest after that.

ours: contract, section 1. Where OpenCode has to misbehave, a small program stands in for it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.opencode.data_id import FILE_NAME, data_folder, data_id
from opencode_mcp.opencode.instance_file import State, read_record, record_path, write_record
from opencode_mcp.opencode.managed import InstanceState, LiveInstance, ManagedInstances
from tests.opencode.managed_support import World, eventually, lives, request, settings, supervisors
from tests.opencode.stand_ins import STUBBORN, fake_opencode

if TYPE_CHECKING:
    import psutil


async def _dead(manager: ManagedInstances, instance_id: str) -> None:
    await eventually(lambda: manager.is_dead(instance_id), "the instance is dead")


async def test_a_started_instance_is_healthy_private_and_leaves_nothing(world: World) -> None:
    """Case 40: on loopback alone, with a password that nobody else has."""
    manager = world.manager()
    instance = await manager.join_or_start(settings(world.home))
    assert request(instance, "GET", "/global/health") == {
        "healthy": True,
        "version": instance.version,
    }
    assert instance.data_id == data_id(data_folder({"HOME": str(world.home)}))
    assert instance.password not in repr(instance)
    files = [path for path in world.folder.iterdir() if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert world.folder.stat().st_mode & 0o777 == 0o700
    commands = [" ".join(process.cmdline()) for process in world.tree(instance).all()]
    assert any("--hostname 127.0.0.1" in command for command in commands)
    assert not any(instance.password in command for command in commands)

    await world.naps.begin(instance, world.home)
    below = world.tree(instance).opencode.children(recursive=True)
    await manager.close()
    await _dead(manager, instance.id)
    assert not [process for process in below if lives(process)]
    assert len(below) >= 3  # the shell and both sleeps
    await eventually(world.nothing_runs, "supervisor, OpenCode and sleeps are gone")
    assert not any(instance.password in path.read_text(encoding="utf-8") for path in files)
    assert await manager.look(instance.id) is InstanceState.DEAD
    manager.forget(instance.id)
    assert await manager.look(instance.id) is InstanceState.UNKNOWN
    assert not manager.is_dead(instance.id)
    assert not [path for path in world.folder.iterdir() if instance.id in path.name]


async def test_two_that_start_at_once_share_one_until_the_last_has_left(world: World) -> None:
    first, second = world.manager(), world.manager()
    one, other = await asyncio.gather(
        first.join_or_start(settings(world.home)), second.join_or_start(settings(world.home))
    )
    assert one == other
    assert len(supervisors(world.folder)) == 2  # a keeper and a runner
    assert await first.join_or_start(settings(world.home)) == one
    await first.close()
    assert await first.look(one.id) == one  # joined again
    await first.close()
    await asyncio.sleep(0.5)  # more than twice as long as the supervisor takes to notice
    assert await second.look(one.id) == one
    assert request(one, "GET", "/global/health")["healthy"] is True
    await second.close()
    await _dead(second, one.id)


async def test_one_that_lives_in_another_container_is_left_alone(world: World) -> None:
    """Its record and locks are on a volume that both share; its loopback is not."""
    elsewhere, here = world.manager(), world.manager()
    other = await elsewhere.join_or_start(settings(world.home))
    path = record_path(world.folder, other.id)
    record = read_record(path)
    assert record is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    fd = os.open(path, os.O_RDWR)
    write_record(fd, replace(record, url=nobody))
    os.close(fd)
    own = await here.join_or_start(settings(world.home))
    assert own.id != other.id
    assert request(own, "GET", "/global/health")["healthy"] is True
    assert not here.is_dead(other.id)
    await elsewhere.close()
    await _dead(here, other.id)  # nobody else kept it


async def test_other_settings_have_an_instance_of_their_own(world: World) -> None:
    manager = world.manager()
    one = await manager.join_or_start(settings(world.home))
    other = await manager.join_or_start(settings(world.home, LC_ALL="C"))
    assert one.id != other.id
    assert one.url != other.url
    assert one.password != other.password
    assert one.settings_key != other.settings_key
    assert one.data_id == other.data_id


async def test_a_killed_client_process_takes_everything_with_it(world: World) -> None:
    client, instance_id = await world.client()
    watcher = world.manager()
    instance = await watcher.look(instance_id)
    assert isinstance(instance, LiveInstance)
    await world.naps.begin(instance, world.home)
    below = world.tree(instance).opencode.children(recursive=True)
    await watcher.close()
    assert not watcher.is_dead(instance_id)
    client.kill()
    await _dead(watcher, instance_id)
    assert not [process for process in below if lives(process)]
    await eventually(world.nothing_runs, "everything is gone")


@pytest.mark.parametrize(
    ("victim", "how"),
    [
        pytest.param("keeper", signal.SIGKILL, id="keeper-killed"),
        pytest.param("runner", signal.SIGKILL, id="runner-killed"),
        pytest.param("opencode", signal.SIGKILL, id="opencode-killed"),
        pytest.param("keeper", signal.SIGTERM, id="keeper-asked"),
    ],
)
async def test_whoever_dies_the_lock_is_free_only_when_nothing_runs(
    world: World, victim: str, how: signal.Signals
) -> None:
    manager = world.manager()
    instance = await manager.join_or_start(settings(world.home))
    await world.naps.begin(instance, world.home)
    tree = world.tree(instance)
    executing = [tree.opencode, *tree.opencode.children(recursive=True)]
    assert len(executing) >= 4
    doomed: psutil.Process = getattr(tree, victim)
    assert not manager.is_dead(instance.id)
    doomed.send_signal(how)
    await _dead(manager, instance.id)
    assert not [process for process in executing if lives(process)]
    await eventually(world.nothing_runs, "the supervisor is gone as well")
    record = read_record(record_path(world.folder, instance.id))
    assert record is not None
    assert record.state is State.GONE
    assert record.password == ""
    assert await manager.look(instance.id) is InstanceState.DEAD


async def test_opencode_dies_even_if_both_supervisor_processes_are_killed(
    world: World, tmp_path: Path
) -> None:
    manager = world.manager()
    fake = fake_opencode(tmp_path / "opencode", STUBBORN)
    instance = await manager.join_or_start(settings(world.home, binary=fake))
    tree = world.tree(instance)
    tree.keeper.suspend()  # so that it cannot clean up
    tree.runner.kill()
    tree.keeper.kill()
    await eventually(lambda: not lives(tree.opencode), "OpenCode is gone")
    await _dead(manager, instance.id)


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP], ids=lambda it: it.name)
async def test_a_terminals_signals_do_not_stop_an_instance(
    world: World, tmp_path: Path, ignored: signal.Signals
) -> None:
    manager = world.manager()
    fake = fake_opencode(tmp_path / "opencode", STUBBORN)
    instance = await manager.join_or_start(settings(world.home, binary=fake))
    tree = world.tree(instance)
    tree.keeper.send_signal(ignored)
    tree.runner.send_signal(ignored)
    await asyncio.sleep(0.3)
    assert await manager.look(instance.id) == instance
    # and what OpenCode starts can be interrupted: "ignored" would be inherited for good
    status = Path(f"/proc/{tree.opencode.pid}/status").read_text(encoding="utf-8")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    assert not int(mask, 16) & (1 << (ignored - 1))


async def test_who_finds_an_instance_dying_waits_and_starts_another(
    world: World, tmp_path: Path
) -> None:
    fake = settings(world.home, binary=fake_opencode(tmp_path / "opencode", STUBBORN))
    first, second = world.manager(), world.manager()
    old = await first.join_or_start(fake)
    path = record_path(world.folder, old.id)
    await first.close()

    def dying() -> bool:
        record = read_record(path)
        return record is not None and record.state is State.STOPPING

    await eventually(dying, "the supervisor has begun to stop it")
    assert not second.is_dead(old.id)
    assert await second.look(old.id) is InstanceState.UNKNOWN
    new = await second.join_or_start(fake)
    assert new.id != old.id
    assert second.is_dead(old.id)


async def test_a_missing_file_proves_nothing(world: World) -> None:
    manager = world.manager()
    assert await manager.look("0" * 32) is InstanceState.UNKNOWN
    assert not manager.is_dead("0" * 32)
    manager.forget("0" * 32)


async def test_a_copied_record_without_a_lock_is_dead_and_forgotten(world: World) -> None:
    manager = world.manager()
    path = record_path(world.folder, "1" * 32)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")  # what a kill in the middle of a write leaves
    assert manager.is_dead("1" * 32)
    assert await manager.look("1" * 32) is InstanceState.DEAD
    manager.forget("1" * 32)
    assert not path.exists()


async def test_two_that_name_the_data_at_once_agree(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "opencode"
    names = await asyncio.gather(*(asyncio.to_thread(data_id, folder) for _ in range(8)))
    assert len(set(names)) == 1
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_data_id_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not one", encoding="utf-8")
    with pytest.raises(ValueError, match=FILE_NAME):
        data_id(tmp_path)


def test_xdg_data_home_goes_before_home() -> None:
    assert data_folder({"HOME": "/h", "XDG_DATA_HOME": "/x"}) == Path("/x/opencode")
    assert data_folder({"HOME": "/h", "XDG_DATA_HOME": ""}) == Path("/h/.local/share/opencode")


def test_the_supervisor_imports_nothing_heavy() -> None:
    heavy = ("fastmcp", "pydantic", "aiohttp", "aiosqlite", "asyncio", "tenacity")
    code = (
        "import sys, opencode_mcp.opencode.supervisor;"
        f"print(sorted(set({heavy!r}) & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert said.stdout == b"[]\n"
