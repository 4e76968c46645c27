"""What is wrong with settings only in combination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from opencode_mcp.records import ExitAction, InstanceKind
from opencode_mcp.settings_model import Settings, variable
from opencode_mcp.settings_values import is_loopback, is_loopback_host

if TYPE_CHECKING:
    from opencode_mcp.settings_env import Reading


#: how Docker and Podman call the machine that a container runs on
_CONTAINER_HOSTS = ("host.docker.internal", "host.containers.internal")


class Judge(Protocol):
    """Notes a fault of a setting, unless it or one of the others was refused before."""

    def __call__(self, name: str, *others: str, bad: bool, reason: str) -> None:
        """Note `reason` if it is `bad`."""


def check_together(settings: Settings, reading: Reading, wrong: set[str]) -> None:
    """Note what is wrong only in combination; says nothing about values already refused."""

    def judge(name: str, *others: str, bad: bool, reason: str) -> None:
        if bad and not wrong & {name, *others}:
            reading.fault(name, reason)

    _check_connection(settings, judge)
    _check_ceilings(settings, judge)
    if settings.transport == "http":
        _check_callers(settings, judge)


def _check_connection(settings: Settings, judge: Judge) -> None:
    url = settings.server_url
    attach = settings.mode is InstanceKind.ATTACH
    judge(
        "mode",
        "server_url",
        bad=attach and url is None,
        reason=f"needs {variable('server_url')}, the address of the running OpenCode"
        " (the `bundled` image brings one of its own)",
    )
    judge(
        "server_url",
        "allow_insecure_http",
        bad=url is not None
        and url.startswith("http:")
        and not is_loopback(url)
        and not settings.allow_insecure_http,
        reason=f"must be https beyond this machine, or {variable('allow_insecure_http')} be true"
        + _the_host_of_a_container(url),
    )
    judge(
        "remote_paths",
        "mode",
        bad=settings.remote_paths and not attach,
        reason="must be false in managed mode: that OpenCode runs on this machine (in a container:"
        " the `bundled` image, which has one)",
    )
    judge(
        "on_exit",
        "mode",
        bad=settings.on_exit is ExitAction.KEEP and not attach,
        reason="must be abort or end in managed mode: that OpenCode stops with its last server",
    )


def _the_host_of_a_container(url: str | None) -> str:
    """Return what else must be known about the name by which a container reaches its host."""
    name = urlsplit(url or "").hostname
    if name not in _CONTAINER_HOSTS:
        return ""
    return (
        f"; {name} is the machine that this container runs on, seen from inside: Docker on Linux"
        f" knows it with --add-host={name}:host-gateway, and that OpenCode must listen beyond"
        " loopback and have a password"
    )


def _check_ceilings(settings: Settings, judge: Judge) -> None:
    judge(
        "turn_timeout_seconds",
        "max_turn_timeout_seconds",
        bad=settings.turn_timeout_seconds > settings.max_turn_timeout_seconds,
        reason=f"must be at most {variable('max_turn_timeout_seconds')},"
        f" {settings.max_turn_timeout_seconds}",
    )
    judge(
        "default_sandbox",
        "max_sandbox",
        bad=not settings.default_sandbox.is_within(settings.max_sandbox),
        reason=f"must not be wider than {variable('max_sandbox')}, {settings.max_sandbox.value}",
    )
    judge(
        "default_approval_policy",
        "allowed_approval_policies",
        bad=settings.default_approval_policy not in settings.allowed_approval_policies,
        reason=f"must be one of {variable('allowed_approval_policies')},"
        f" {', '.join(settings.allowed_approval_policies)}",
    )


def _check_callers(settings: Settings, judge: Judge) -> None:
    """Note who could call that should not, and what they could do together."""
    tokens = variable("auth_tokens")
    has_tokens = bool(settings.auth_tokens) or settings.auth_tokens_file is not None
    judge(
        "host",
        "auth_tokens",
        "auth_tokens_file",
        "allow_anonymous",
        bad=not is_loopback_host(settings.host) and not has_tokens and not settings.allow_anonymous,
        reason=f"beyond this machine, callers must have tokens ({tokens} or {tokens}_FILE), or"
        f" {variable('allow_anonymous')} be true",
    )
    judge(
        "allow_anonymous",
        bad=settings.allow_anonymous and has_tokens,
        reason="must be false where tokens are set: who has none would be let in",
    )
    count = len(settings.auth_tokens)
    judge(
        "allow_shared_managed",
        "auth_tokens",
        "auth_tokens_file",
        "mode",
        bad=settings.mode is InstanceKind.MANAGED
        and count > 1
        and not settings.allow_shared_managed,
        reason=f"must be true for {count} principals to share the OpenCode that this server starts:"
        " an agent can read what it can (docs/security.md)",
    )
