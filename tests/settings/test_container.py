"""What people meet who run this in a container: the texts name the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.settings.support import faults, load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["host.docker.internal", "host.containers.internal"])
def test_the_host_of_a_container_is_explained_where_plain_http_is_refused(
    project: Path, name: str
) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_SERVER_URL": f"http://{name}:4096"})
    assert "OPENCODE_MCP_ALLOW_INSECURE_HTTP" in fault
    assert f"--add-host={name}:host-gateway" in fault
    assert "listen beyond loopback" in fault


def test_another_host_is_refused_without_that(project: Path) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_SERVER_URL": "http://opencode.example.org:4096"})
    assert fault.endswith("or OPENCODE_MCP_ALLOW_INSECURE_HTTP be true")


def test_the_host_of_a_container_is_taken_once_plain_http_is_allowed(project: Path) -> None:
    url = "http://host.docker.internal:4096"
    environ = {"OPENCODE_MCP_SERVER_URL": url, "OPENCODE_MCP_ALLOW_INSECURE_HTTP": "true"}
    assert load(project, environ).server_url == url


@pytest.mark.parametrize("mode", ["attach", "managed"])
def test_the_runtime_image_without_an_opencode_names_the_one_that_has_it(
    project: Path, mode: str
) -> None:
    """Contract §4, MODE: what `runtime` sets, and an operator who gives it no address."""
    environ = {"OPENCODE_MCP_MODE": mode, "OPENCODE_MCP_REMOTE_PATHS": "true"}
    (fault,) = faults(project, environ)
    assert "the `bundled` image" in fault
    assert ("OPENCODE_MCP_SERVER_URL" in fault) == (mode == "attach")
