"""Write what is documented of the settings from the settings themselves.

usage: python scripts/configuration.py        (part of `make fmt`; a test checks that it was run)

It writes config.example.toml whole; in docs/configuration.md the part between the two marks.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.settings import allowed_values
from opencode_mcp.settings_model import NAMES, Settings, variable
from opencode_mcp.settings_serving import Note

if TYPE_CHECKING:
    from collections.abc import Mapping

REPO = Path(__file__).resolve().parent.parent
BEGIN = "<!-- settings -->"
END = "<!-- /settings: written by scripts/configuration.py -->"

#: what config.example.toml shows where the default depends on the machine, or is nothing
EXAMPLES: Mapping[str, object] = {
    "mode": "managed",
    "server_url": "https://opencode.example.org",
    "server_password": "not in a file that others can read",
    "server_password_file": "/run/secrets/opencode",
    "serve_args": "--log-level WARN",
    "child_env": ["ANTHROPIC_API_KEY", "AWS_*"],
    "allowed_hosts": ["mcp.example.org", "localhost"],
    "allowed_origins": ["https://chat.example.org"],
    "auth_tokens": ["alice:not-in-a-file-that-others-can-read"],
    "auth_tokens_file": "/run/secrets/tokens",
    "admins": ["token:alice"],
    "max_sandbox": "workspace-write",
    "database": "/var/lib/opencode-mcp/opencode-mcp.db",
    "default_cwd": "/srv/projects/website",
    "allowed_roots": ["/srv/projects"],
    "default_model": "anthropic/claude-sonnet-4-5",
    "default_agent": "build",
    "allowed_approval_policies": ["never", "caller"],
    "log_format": "json",
}

_EXAMPLE_HEAD = """\
# Every setting of opencode-mcp; docs/configuration.md tells more.
# Written by scripts/configuration.py from opencode_mcp/settings_model.py: change it there.
# A value shown is the default, or, where the text says so, an example.
"""


def note(name: str) -> Note:
    """Return what the model says about a setting besides its kind."""
    metadata = Settings.model_fields[name].metadata
    return next((item for item in metadata if isinstance(item, Note)), Note())


def plain_default(name: str) -> object:
    """Return a setting's default as TOML holds it; None: the machine decides, or there is none."""
    if note(name).default:
        return None
    default = Settings.model_fields[name].default
    return default.value if isinstance(default, Enum) else default


def default_text(name: str) -> str:
    """Return a setting's default for a table."""
    default = plain_default(name)
    if default is None:
        return note(name).default or "none"
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


def meaning(name: str) -> str:
    """Return the sentence about a setting."""
    return Settings.model_fields[name].description or ""


def full_table() -> list[str]:
    """Return the table of docs/configuration.md, line by line."""
    rows = [
        f"| `{variable(name)}` | {default_text(name)} | {allowed_values(name)} | {meaning(name)} |"
        for name in NAMES
    ]
    return ["| variable | default | allowed | meaning |", "|---|---|---|---|", *rows]


def with_table(text: str, table: list[str]) -> str:
    """Return a page with its table brought up to date: behind the first mark, up to the second.

    Without a second mark one is added. Raises ValueError if the first is gone.
    """
    before, begin, rest = text.partition(BEGIN)
    if not begin:
        msg = f"the page holds no {BEGIN}"
        raise ValueError(msg)
    _, end, after = rest.partition(END)
    return before + "\n".join([BEGIN, "", *table, "", END]) + (after if end else rest)


def example_file() -> str:
    """Return config.example.toml: every key, switched off."""
    parts = [_EXAMPLE_HEAD]
    for name in NAMES:
        default = plain_default(name)
        text = f"# {meaning(name)}"
        kind = f"#   {allowed_values(name)}"
        if default is None:
            kind += f"; default: {note(name).default or 'none'}; for example:"
            default = EXAMPLES[name]
        parts.append(f"{text}\n{kind}\n#{name} = {json.dumps(default, ensure_ascii=False)}\n")
    return "\n".join(parts)


def main() -> None:
    """Write what is out of date."""
    page = REPO / "docs" / "configuration.md"
    texts = {
        page: with_table(page.read_text(encoding="utf-8"), full_table()),
        REPO / "config.example.toml": example_file(),
    }
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(REPO)}")


if __name__ == "__main__":
    main()
