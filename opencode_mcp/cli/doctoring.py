"""`opencode-mcp doctor`: is all that a server needs there, and if not, what to do."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import click

from opencode_mcp.cli.screen import (
    EXIT_FAILED,
    EXIT_USAGE,
    print_findings,
    print_json,
    progress,
)
from opencode_mcp.cli.settings_options import SettingsCommand, load_or_raise, takes_settings
from opencode_mcp.counting import counted
from opencode_mcp.errors import ConfigError
from opencode_mcp.logs import configure_logging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opencode_mcp.app.findings import Finding
    from opencode_mcp.settings import Loaded

_CHECKS = ("database", "roots", "OpenCode", "providers")


@click.command(cls=SettingsCommand, short_help="Is all there that a server needs?")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
@takes_settings
@click.pass_context
def doctor(context: click.Context, *, as_json: bool) -> None:
    """Check settings, database, folders, OpenCode, its password, version and provider keys.

    Changes nothing and sends no prompt. In managed mode it joins the OpenCode that servers use,
    or starts one for a moment. Exits with 0 when nothing is a problem, 1 when something is, 2 when
    the settings are wrong.
    """
    from opencode_mcp.app.findings import Level  # noqa: PLC0415 - a command is imported late

    code = 0
    try:
        loaded = load_or_raise(context)
    except ConfigError as error:
        findings, code = _wrong_settings(error), EXIT_USAGE
    else:
        configure_logging("error", loaded.settings.log_format)
        with progress("looking …"):
            findings = asyncio.run(_look(loaded, os.environ))
        if any(finding.level is Level.PROBLEM for finding in findings):
            code = EXIT_FAILED
    _report(findings, as_json=as_json)
    sys.exit(code)


def _wrong_settings(error: ConfigError) -> list[Finding]:
    from opencode_mcp.app.findings import problem, skipped  # noqa: PLC0415

    _, *faults = str(error).splitlines()
    remedy = "see docs/configuration.md; `opencode-mcp serve --help` lists what is allowed"
    return [
        *(problem("settings", fault.strip(), "") for fault in faults[:-1]),
        *(problem("settings", fault.strip(), remedy) for fault in faults[-1:]),
        *(skipped(check, "the settings must be right first") for check in _CHECKS),
    ]


async def _look(loaded: Loaded, environ: Mapping[str, str]) -> list[Finding]:
    from opencode_mcp.app.check_files import (  # noqa: PLC0415
        check_callers,
        check_database,
        check_roots,
    )
    from opencode_mcp.app.check_opencode import check_opencode  # noqa: PLC0415

    settings = loaded.settings
    return [
        *_settings(loaded),
        *check_database(settings),
        *check_roots(settings, environ),
        *check_callers(settings),
        *await check_opencode(settings, environ),
    ]


def _settings(loaded: Loaded) -> list[Finding]:
    from opencode_mcp.app.findings import ok, warning  # noqa: PLC0415

    settings = loaded.settings
    where = f", {loaded.config_file}" if loaded.config_file else ", no configuration file"
    text = f"{settings.mode.value}, {settings.transport}{where}"
    findings = [ok("settings", f"{text} (`opencode-mcp config` shows all)")]
    if settings.ignored_variables:
        names = ", ".join(settings.ignored_variables)
        remedy = "set enableServiceLinks: false in the pod, if it bothers you"
        findings.append(warning("settings", f"ignored, Kubernetes' service links: {names}", remedy))
    return findings


def _report(findings: Sequence[Finding], *, as_json: bool) -> None:
    counts = {
        level: sum(1 for finding in findings if finding.level.value == level)
        for level in ("problem", "warning", "skipped")
    }
    if as_json:
        print_json(
            {
                "ok": not counts["problem"],
                "problems": counts["problem"],
                "warnings": counts["warning"],
                "skipped": counts["skipped"],
                "checks": [
                    {
                        "check": finding.check,
                        "level": finding.level.value,
                        "text": finding.text,
                        "remedy": finding.remedy or None,
                    }
                    for finding in findings
                ],
            }
        )
        return
    print_findings([(f.level.value, f.check, f.text, f.remedy) for f in findings])
    found = [counted(counts[level], level) for level in ("problem", "warning") if counts[level]]
    if counts["skipped"]:
        found.append(f"{counts['skipped']} skipped")
    click.echo(f"\n{', '.join(found) or 'all is well'}")
