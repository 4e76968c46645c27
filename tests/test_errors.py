"""The error tree in the docstring is the real one, and each name is one of the contract's."""

from __future__ import annotations

import inspect
import re

from opencode_mcp import errors, opencode_errors
from opencode_mcp.errors import OpencodeMcpError

#: contract §3, Errors: those of this release, and what the base and the start-up errors carry
CONTRACT_NAMES = {
    "INVALID_ARGUMENT",
    "PATH_NOT_ALLOWED",
    "POLICY_NOT_ALLOWED",
    "APPROVAL_NOT_FOUND",
    "SESSION_NOT_FOUND",
    "SESSION_BUSY",
    "SESSION_CAPACITY",
    "RUN_CAPACITY",
    "TURN_NOT_FOUND",
    "OPENCODE_UNAVAILABLE",
    "OPENCODE_UNAUTHORIZED",
    "OPENCODE_UNSUPPORTED",
    "OPENCODE_OVERLOADED",
    "UPSTREAM_ERROR",
    "UPSTREAM_RESPONSE_TOO_LARGE",
    "SUBMISSION_UNCONFIRMED",
    "END_CONFLICT",
    "OUTPUT_NOT_READY",
    "OUTPUT_UNAVAILABLE",
    "SNAPSHOT_EXPIRED",
    "INVALID_OUTPUT_SCHEMA",
    "REQUEST_ID_CONFLICT",
    "REQUEST_PENDING",
    "REQUEST_ENDED",
    "TRACKING_UNAVAILABLE",
    "SHUTTING_DOWN",
    "INTERNAL",
}


def documented() -> dict[str, str]:
    """Return each class of the docstring's tree with the class above it."""
    above: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ((?:[│ ]   )*)(?:[├└]── )?(\w+Error)\b", line)
        if not found:
            continue
        depth = len(found[1]) // 4 + ("── " in line)
        path = [*path[:depth], found[2]]
        if depth:
            above[found[2]] = path[depth - 1]
    return above


def classes() -> list[type[OpencodeMcpError]]:
    found = {
        kind
        for module in (errors, opencode_errors)
        for _, kind in inspect.getmembers(module, inspect.isclass)
    }
    return [kind for kind in found if issubclass(kind, OpencodeMcpError)]


def test_tree_in_the_docstring_is_the_real_one() -> None:
    real = {
        kind.__name__: base.__name__
        for kind in classes()
        for base in kind.__bases__
        if issubclass(base, OpencodeMcpError)
    }
    assert documented() == real


def test_built_in_bases_are_the_documented_ones() -> None:
    """Whoever knows only Python can catch what the network did."""
    for line in (errors.__doc__ or "").splitlines():
        found = re.search(r"(\w+Error) +\((\w+Error)\)", line)
        if found:
            built_in = {"ConnectionError": ConnectionError, "TimeoutError": TimeoutError}[found[2]]
            assert issubclass({kind.__name__: kind for kind in classes()}[found[1]], built_in)


def test_names_are_the_contracts() -> None:
    assert {kind.name for kind in classes()} <= CONTRACT_NAMES


def test_every_error_says_what_it_means() -> None:
    assert all(kind.__doc__ for kind in classes())
