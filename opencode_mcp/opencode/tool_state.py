"""A tool call as its part tells it, read on 1.18.33 for each tool that changes files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from opencode_mcp.opencode.fields import Digest, FromOpencode, Head, Tail

#: a patch may name more files; a result lists 200 (contract §3)
MAX_FILES = 1_000


def known_paths(value: object) -> tuple[str, ...]:
    """Return the strings of a list, at most `MAX_FILES` of them."""
    paths = value if isinstance(value, list | tuple) else ()
    return tuple(path for path in paths[:MAX_FILES] if isinstance(path, str) and path)


FilePaths = Annotated[tuple[str, ...], BeforeValidator(known_paths)]


class ToolMetadata(FromOpencode):
    """What a tool says besides its output. Every tool has fields of its own here."""

    #: the files that `write`, `edit` or `apply_patch` changed, as absolute paths
    files: FilePaths = ()
    #: a call that an abort tore down; its `output` is here and not in the state (facts 4.2)
    interrupted: bool = False
    output: Tail = ""


def _metadata(value: object) -> object:
    """Take what we know from a tool's metadata, each field only where it has its kind."""
    if not isinstance(value, dict):
        return {}
    output = value.get("output")
    return {
        "files": _changed(value),
        "interrupted": value.get("interrupted") is True,
        "output": output,
    }


def _changed(metadata: dict[str, object]) -> list[object]:
    """List the files that a call names: `write`, `edit`, and `apply_patch` in this order.

    `read` has a `filepath` in its input only, so that one here is always of a change.
    """
    found: list[object] = [metadata.get("filepath")]
    diff = metadata.get("filediff")
    if isinstance(diff, dict):
        found.append(diff.get("file"))
    patched = metadata.get("files")
    for item in patched[:MAX_FILES] if isinstance(patched, list) else ():
        if isinstance(item, dict):
            found += [item.get("filePath"), item.get("movePath")]
    return found


class ToolState(FromOpencode):
    """Where a tool call stands: `pending`, `running`, `completed` or `error`."""

    status: str
    title: Head = None
    error: Head = None
    output: Tail = ""
    #: what the tool was called with, to tell whether two calls are the same
    input_digest: Digest = Field(default="", alias="input")
    metadata: Annotated[ToolMetadata, BeforeValidator(_metadata)] = ToolMetadata()
