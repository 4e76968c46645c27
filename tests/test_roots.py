"""Where sessions may run: nothing leads out of the roots, and a refusal says why."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.errors import PathNotAllowedError
from opencode_mcp.roots import allowed_directory, is_too_wide

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a folder, a file and links, and a secret folder beside it."""
    root = tmp_path / "root"
    (root / "inside" / "deep").mkdir(parents=True)
    (root / "file").touch()
    (tmp_path / "root-secret").mkdir()
    (root / "out").symlink_to(tmp_path / "root-secret")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "within").symlink_to("inside")
    return root


def judge(cwd: str | None, roots: Sequence[Path], default: Path | None = None) -> str:
    return allowed_directory(cwd, default=default, roots=roots, remote=False)


def refusal(cwd: str | None, roots: Sequence[Path], *, remote: bool = False) -> str:
    with pytest.raises(PathNotAllowedError) as refused:
        allowed_directory(cwd, default=None, roots=roots, remote=remote)
    return str(refused.value)


def test_root_and_what_lies_below_are_allowed(root: Path) -> None:
    assert judge(str(root), [root]) == str(root)
    assert judge(f"{root}/inside/deep/", [root]) == f"{root}/inside/deep"


def test_folder_in_any_of_the_roots_is_allowed(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "root-secret"
    assert judge(str(secret), [root, secret]) == str(secret)


def test_real_path_is_returned(root: Path) -> None:
    """Case 39, and contract §4: compared and sent as the real path."""
    assert judge(f"{root}/within/deep", [root]) == f"{root}/inside/deep"
    assert judge(f"{root}/inside/../inside/./deep", [root]) == f"{root}/inside/deep"


def test_default_folder_stands_in_and_is_judged_as_well(root: Path, tmp_path: Path) -> None:
    assert judge(None, [root], default=root / "inside") == f"{root}/inside"
    with pytest.raises(PathNotAllowedError, match="default folder"):
        judge(None, [root], default=tmp_path)


def test_without_any_folder_one_is_asked_for(root: Path) -> None:
    assert "cwd is required" in refusal(None, [root])


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [
        pytest.param("", "absolute", id="empty"),
        pytest.param("inside", "absolute", id="relative"),
        pytest.param("./inside", "absolute", id="dot"),
        pytest.param("~", "`~` is not expanded", id="home"),
        pytest.param("~root/x", "`~` is not expanded", id="home-of-somebody"),
        pytest.param("C:\\work", "absolute", id="windows"),
        pytest.param("{root}/in\0side", "NUL", id="nul"),
        pytest.param("{root}/\ud800", "no path can have", id="surrogate"),
        pytest.param("{root}/missing", "does not exist", id="missing"),
        pytest.param("{root}/file", "is not a folder", id="file"),
        pytest.param("{root}/file/x", "cannot be looked at", id="below-a-file"),
        pytest.param("{root}/loop", "cannot be looked at", id="link-to-itself"),
        pytest.param("{root}/" + "x" * 300, "cannot be looked at", id="name-too-long"),
        pytest.param("{root}/..", "lies outside", id="parent"),
        pytest.param("{root}-secret", "lies outside", id="sibling-with-the-same-beginning"),
        pytest.param("{root}/out", "lies outside", id="link-out"),
        pytest.param("{root}/up/root-secret", "lies outside", id="link-up"),
        pytest.param("{root}/within/../../root-secret", "lies outside", id="dots-after-a-link"),
        pytest.param("/", "lies outside", id="everything"),
        pytest.param("//", "lies outside", id="two-slashes"),
    ],
)
def test_folder_is_refused_with_the_reason(root: Path, cwd: str, reason: str) -> None:
    """Case 39."""
    assert reason in refusal(cwd.replace("{root}", str(root)), [root])


def test_refusal_shows_at_most_100_characters_of_the_path_and_none_raw(root: Path) -> None:
    """Contract §2: error texts echo paths, at most 100 characters of them."""
    text = refusal("/" + "x" * 500, [root])
    assert "x" * 98 in text
    assert "x" * 101 not in text
    assert "\x1b" not in refusal("/\x1b[31mred", [root])


@pytest.mark.parametrize("way", ["", "..", "up"])
def test_refusal_outside_does_not_tell_what_exists(root: Path, tmp_path: Path, way: str) -> None:
    start = f"{root}/{way}" if way else str(tmp_path)
    there = refusal(f"{start}/root-secret", [root])
    missing = refusal(f"{start}/root-sekret", [root])
    assert there.replace("secret", "sekret") == missing


def test_refusal_outside_names_the_roots_but_not_endlessly(root: Path) -> None:
    many = [root / str(number) for number in range(8)]
    text = refusal("/", many)
    assert f"'{root}/0'" in text
    assert "and 3 more" in text
    assert "none" in refusal("/", [])


def test_remote_folder_is_compared_as_text() -> None:
    roots = [Path("/over/there")]
    for cwd in ("/over/there", "/over/there/", "//over/./there", "/over/there/x"):
        plain = allowed_directory(cwd, default=None, roots=roots, remote=True)
        assert plain == str(Path("/" + cwd.lstrip("/")))


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [
        pytest.param("/over/there/../x", "`..`", id="parent"),
        pytest.param("/over/there/x/..", "`..`", id="parent-that-stays-inside"),
        pytest.param("/over/there/%2e%2e/x", "`%`", id="encoded-parent"),
        pytest.param("/over/therefore", "lies outside", id="same-beginning"),
        pytest.param("/over", "lies outside", id="above"),
        pytest.param("over/there", "absolute", id="relative"),
        pytest.param("/over/there/\0", "NUL", id="nul"),
    ],
)
def test_remote_folder_is_refused_with_the_reason(cwd: str, reason: str) -> None:
    """Contract §4, REMOTE_PATHS: lexically, `..` and `%` refused."""
    assert reason in refusal(cwd, [Path("/over/there")], remote=True)


def test_only_everything_and_home_are_too_wide(tmp_path: Path) -> None:
    link = tmp_path / "home-link"
    link.symlink_to(tmp_path)
    assert is_too_wide(Path("/"), home=str(tmp_path))
    assert is_too_wide(tmp_path, home=str(tmp_path))
    assert is_too_wide(tmp_path, home=str(link))
    assert not is_too_wide(tmp_path / "x", home=str(tmp_path))


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders and links with short names, so that random paths often exist."""
    base = tmp_path_factory.mktemp("maze").resolve()
    for folder in ("a/b", "b/a", "c"):
        (base / folder).mkdir(parents=True)
    for link, target in (("a/c", "../b"), ("b/b", ".."), ("c/a", "/"), ("a/b/a", "../../c")):
        (base / link).symlink_to(target)
    return base


STEPS = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", "a/..", "\0", "%2e%2e", "~"]))


@given(steps=STEPS, root=st.sampled_from(["", "a", "a/b", "b", "c"]), remote=st.booleans())
def test_accepted_folder_lies_inside_a_root(
    maze: Path, steps: list[str], root: str, *, remote: bool
) -> None:
    roots = [maze / root]
    try:
        accepted = allowed_directory(
            f"{maze}/{'/'.join(steps)}", default=None, roots=roots, remote=remote
        )
    except PathNotAllowedError:
        return
    assert Path(accepted).is_relative_to(maze / root)
    assert ".." not in Path(accepted).parts
    if not remote:
        assert Path(accepted).is_dir()
        assert os.path.realpath(accepted) == accepted


@given(text=st.text())
def test_any_text_is_accepted_or_refused_and_nothing_else(maze: Path, text: str) -> None:
    for remote in (False, True):
        with suppress(PathNotAllowedError):
            accepted = allowed_directory(text, default=None, roots=[maze], remote=remote)
            assert accepted.startswith(str(maze))
