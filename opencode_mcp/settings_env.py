"""Where settings come from: command line, environment, TOML file; and which one won.

Precedence: command line > environment > TOML file > OpenCode's own variables > default. An empty
string counts as unset. Nothing is checked here except names: a name that nobody knows is a fault.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from opencode_mcp.settings_model import NAMES, SECRETS, Settings, variable
from opencode_mcp.settings_serving import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_VARIABLE = "OPENCODE_MCP_CONFIG"
#: where a setting is not given, OpenCode's own variable may stand for it
_OPENCODE_VARIABLES = {
    "server_username": "OPENCODE_SERVER_USERNAME",
    "server_password": "OPENCODE_SERVER_PASSWORD",
}
#: two ways to say one thing: the one from the stronger source wins
_EITHER_OR = (("server_password", "server_password_file"), ("auth_tokens", "auth_tokens_file"))
_LONGEST_SHOWN = 100
_SERVICE_PORT = re.compile(r"PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True)
class Given:
    """A setting's raw value and where it was given."""

    value: object
    #: what the operator wrote there: a variable, an option, or a key and its file
    source: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All that the sources said, and what was wrong with it; faults never hold a secret."""

    given: dict[str, Given] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    #: variables left alone: Kubernetes' service links
    ignored: list[str] = field(default_factory=list)
    #: the configuration file, if one was read
    files: list[Path] = field(default_factory=list)

    def add(self, layer: Mapping[str, Given]) -> None:
        """Lay a stronger source over the weaker ones."""
        for itself, in_file in _EITHER_OR:
            if itself in layer or in_file in layer:
                self.given.pop(itself, None)
                self.given.pop(in_file, None)
            if itself in layer and in_file in layer:
                self.faults.append(
                    f"{layer[in_file].source}: must not be set together with {layer[itself].source}"
                )
        self.given.update(layer)

    def fault(self, name: str, reason: str) -> None:
        """Note that a setting is wrong; `reason` completes "NAME=value: "."""
        self.faults.append(f"{self.shown(name)}: {reason}")

    def shown(self, name: str) -> str:
        """Return a setting as given, for a person: source, value unless secret, our name for it."""
        given = self.given.get(name)
        if given is None:
            default = Settings.model_fields[name].get_default(call_default_factory=True)
            return f"{variable(name)}={default} (default)" if default else variable(name)
        alias = "" if given.source == variable(name) else f" ({variable(name)})"
        text = str(given.value)
        # A URL may hold a password although it must not.
        if name in SECRETS or (name == "server_url" and set(text) & set("@?#")):
            return given.source + alias
        cut = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
        quoted = repr(cut) if isinstance(given.value, str) else cut
        return f"{given.source}={quoted}{alias}"


def read_sources(
    environ: Mapping[str, str], config_file: Path | None, overrides: Mapping[str, object]
) -> Reading:
    """Read every source. A configuration file that was named must exist."""
    reading = Reading()
    reading.add(_from_toml(environ, config_file, reading))
    reading.add(_from_environment(environ, reading))
    reading.add(_from_command_line(overrides, reading))
    if "server_url" in reading.given:  # elsewhere OpenCode's own variables mean another OpenCode
        _add_opencode_variables(environ, reading)
    return reading


def _from_command_line(overrides: Mapping[str, object], reading: Reading) -> dict[str, Given]:
    layer = {}
    for name, value in overrides.items():
        option = "--" + name.replace("_", "-")
        if name not in NAMES:
            nearest = "--" + _nearest(name).replace("_", "-")
            reading.faults.append(f"{option}: unknown option; the nearest known one is {nearest}")
        elif value not in (None, "", ()):
            layer[name] = Given(value, option)
    return layer


class _EnvironmentSource(EnvSettingsSource):
    """pydantic-settings' reader of variables, given the variables."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(Settings)
        known = {variable(name) for name in NAMES}
        self.env_vars = {
            name.lower(): value
            for name, value in environ.items()
            if name in known and value and not _is_service_link(name, value)
        }


def _from_environment(environ: Mapping[str, str], reading: Reading) -> dict[str, Given]:
    known = {variable(name) for name in NAMES} | {CONFIG_VARIABLE}
    for name in sorted(environ):
        if not name.upper().startswith(PREFIX):
            continue
        if _is_service_link(name, environ[name]):
            reading.ignored.append(name)
            continue
        if name in known:
            continue
        nearest = variable(_nearest(name[len(PREFIX) :].lower()))
        reading.faults.append(f"{name}: unknown variable; the nearest known one is {nearest}")
    values = _EnvironmentSource(environ)()
    return {name: Given(value, variable(name)) for name, value in values.items()}


def _is_service_link(name: str, value: str) -> bool:
    """Tell what Kubernetes sets in every pod for a service that is called `opencode-mcp`."""
    rest = name.removeprefix(PREFIX)
    if rest.startswith("SERVICE_"):
        return True
    if not rest.startswith("PORT"):
        return False
    return bool(_SERVICE_URL.match(value) or _SERVICE_PORT.fullmatch(rest))


def _from_toml(
    environ: Mapping[str, str], config_file: Path | None, reading: Reading
) -> dict[str, Given]:
    path, source = _toml_file(environ, config_file)
    try:
        if not path.is_file():
            if source:
                reading.faults.append(f"{source}={str(path)!r}: must be an existing file")
            return {}
        data = TomlConfigSettingsSource(Settings, toml_file=path).toml_data
        reading.files.append(path)
    except UnicodeDecodeError:
        reading.faults.append(f"{path}: must be UTF-8 text")
        return {}
    except (OSError, ValueError) as error:  # ValueError: tomllib's, it tells line and column
        reason = error.strerror if isinstance(error, OSError) else error
        reading.faults.append(f"{path}: cannot be read as TOML: {reason}")
        return {}
    layer = {}
    for name, value in data.items():
        if name not in NAMES:
            nearest = _nearest(name.lower())
            reading.faults.append(
                f"{name} in {path}: unknown key; the nearest known one is {nearest}"
            )
        elif value != "":
            layer[name] = Given(value, f"{name} in {path}")
    return layer


def _toml_file(environ: Mapping[str, str], config_file: Path | None) -> tuple[Path, str]:
    """Return the configuration file and who named it; nobody: it need not exist."""
    if config_file is not None:
        return config_file, "--config"
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE]), CONFIG_VARIABLE
    return platformdirs.user_config_path("opencode-mcp") / "config.toml", ""


def _add_opencode_variables(environ: Mapping[str, str], reading: Reading) -> None:
    given = set(reading.given)
    if "server_password_file" in given:
        given.add("server_password")
    for name, theirs in _OPENCODE_VARIABLES.items():
        if environ.get(theirs) and name not in given:
            reading.given[name] = Given(environ[theirs], theirs)


def _nearest(name: str) -> str:
    # cutoff 0: the contract promises a name, and a far one still shows how names look
    return difflib.get_close_matches(name, NAMES, n=1, cutoff=0)[0]
