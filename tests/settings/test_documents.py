"""The documentation of the settings is current."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from opencode_mcp.settings import Settings, load_settings
from opencode_mcp.settings_model import NAMES, variable
from opencode_mcp.settings_serving import PREFIX
from scripts import configuration
from tests.settings.support import load

REPO = Path(__file__).resolve().parents[2]


def test_example_file_is_current_and_changes_nothing(project: Path) -> None:
    example = REPO / "config.example.toml"
    assert example.read_text(encoding="utf-8") == configuration.example_file(), "run `make fmt`"
    assert load_settings({}, config_file=example, cwd=project) == load(project)


def test_every_key_of_the_example_file_is_a_setting_with_a_good_value() -> None:
    example = (REPO / "config.example.toml").read_text(encoding="utf-8")
    values = tomllib.loads(re.sub(r"^#(\w+ = )", r"\1", example, flags=re.MULTILINE))
    assert tuple(values) == NAMES
    settings = Settings.model_validate(values)
    for name in NAMES:
        if name not in configuration.EXAMPLES:
            assert values[name] == configuration.plain_default(name)
            assert getattr(settings, name) == Settings.model_fields[name].default


def test_documented_table_is_current() -> None:
    text = (REPO / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert configuration.with_table(text, configuration.full_table()) == text, "run `make fmt`"


def test_documents_name_only_settings_that_exist() -> None:
    known = {variable(name) for name in NAMES} | {"OPENCODE_MCP_CONFIG", PREFIX}
    links = re.compile(r"OPENCODE_MCP_(SERVICE_|PORT)")
    for page in [REPO / "README.md", *(REPO / "docs").glob("*.md")]:
        named = set(re.findall(r"OPENCODE_MCP_[A-Z0-9_]*", page.read_text(encoding="utf-8")))
        assert not {name for name in named - known if not links.match(name)}, page
