"""The settings themselves: name, kind, bounds, default and meaning, once.

`docs/configuration.md`, the README's table and `config.example.toml` are checked against this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field

from opencode_mcp import settings_values as values
from opencode_mcp.records import ApprovalPolicy, EndAction, ExitAction, Sandbox
from opencode_mcp.settings_serving import (
    PREFIX,
    AbsolutePath,
    Choice,
    CommaList,
    Note,
    Number,
    ServingSettings,
)

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings, PydanticBaseSettingsSource


def default_database() -> Path:
    """Return the tracking database's place in the user's state folder."""
    return platformdirs.user_state_path("opencode-mcp") / "opencode-mcp.db"


_MAX_SECONDS = 604_800  # a week: longer is a unit mistake


class Settings(ServingSettings):
    """All settings, checked and complete. Durations are whole seconds.

    Made by `settings.load_settings` alone: constructing it reads neither environment nor files.
    """

    database: Annotated[
        Path,
        AbsolutePath,
        Note(
            "an absolute path", default="`opencode-mcp/opencode-mcp.db` in the user's state folder"
        ),
    ] = Field(default_factory=default_database, description="the tracking database")
    default_cwd: Annotated[
        Path | None,
        AbsolutePath,
        Note(
            "an absolute path",
            default="`CLAUDE_PROJECT_DIR`, else where this process (managed) or OpenCode runs",
        ),
    ] = Field(None, description="the folder of a session that names none")
    allowed_roots: Annotated[
        tuple[Path, ...],
        BeforeValidator(values.path_list),
        AfterValidator(values.absolute_paths),
        Note("absolute paths, separated by `:`", default="the default folder, unless `/` or home"),
    ] = Field((), description="sessions may run in these folders and below, nowhere else")
    remote_paths: bool = Field(
        default=False,
        description="attach: folders are OpenCode's, not on this machine; compared as text",
    )
    default_model: Annotated[
        str | None,
        AfterValidator(values.model_name),
        Note("provider/model", default="OpenCode's own"),
    ] = Field(None, description="the model of a session that names none")
    default_agent: Annotated[
        str | None, AfterValidator(values.plain_name), Note("a name", default="OpenCode's own")
    ] = Field(None, description="the agent of a session that names none")
    default_sandbox: Annotated[Sandbox, Choice] = Field(
        Sandbox.WORKSPACE_WRITE, description="the sandbox of a session that names none"
    )
    default_approval_policy: Annotated[ApprovalPolicy, Choice] = Field(
        ApprovalPolicy.NEVER, description="who answers the asks of a session that does not say"
    )
    max_sandbox: Annotated[
        Sandbox, Choice, Note(default="`danger-full-access`; http: `workspace-write`")
    ] = Field(
        Sandbox.DANGER_FULL_ACCESS, description="the widest sandbox that a caller may ask for"
    )
    allowed_approval_policies: Annotated[
        tuple[ApprovalPolicy, ...],
        CommaList,
        Note(
            "one or more of never, on-request, caller, separated by commas",
            default="`never,on-request,caller`",
        ),
        Field(min_length=1),
    ] = Field(tuple(ApprovalPolicy), description="the approval policies that callers may ask for")
    default_wait_seconds: Annotated[int, Number] = Field(
        50,
        ge=0,
        le=600,
        description="how long a call watches its turn (many clients give up at 60)",
    )
    on_call_cancel: Annotated[Literal["abort", "keep"], Choice] = Field(
        "abort",
        description="when the client cancels the call that owns a turn: stop it or let it run",
    )
    turn_timeout_seconds: Annotated[int, Number] = Field(
        3600, ge=1, le=_MAX_SECONDS, description="a turn that names no limit is stopped after this"
    )
    max_turn_timeout_seconds: Annotated[int, Number] = Field(
        21_600, ge=1, le=_MAX_SECONDS, description="the longest limit a caller may ask for"
    )
    approval_timeout_seconds: Annotated[int, Number] = Field(
        600, ge=1, le=_MAX_SECONDS, description="a permission or question is rejected after this"
    )
    startup_timeout_seconds: Annotated[int, Number] = Field(
        60, ge=1, le=600, description="managed: how long OpenCode may take to come up"
    )
    request_timeout_seconds: Annotated[int, Number] = Field(
        30, ge=1, le=600, description="one request to OpenCode, retries included"
    )
    cleanup_timeout_seconds: Annotated[int, Number] = Field(
        15, ge=1, le=600, description="how long an end may take before it is reported unconfirmed"
    )
    end_action: Annotated[EndAction, Choice] = Field(
        EndAction.DELETE, description="what an end does with the session's data in OpenCode"
    )
    session_idle_ttl_seconds: Annotated[int, Number] = Field(
        0,
        ge=0,
        le=31_536_000,
        description="sessions that nobody used for so long are ended, with `END_ACTION`; 0: never",
    )
    on_exit: Annotated[ExitAction, Choice] = Field(
        ExitAction.ABORT,
        description="the turns of this process when it exits: stop them, end their sessions, or"
        " let them run on (attach only)",
    )
    tombstone_days: Annotated[int, Number] = Field(
        7, ge=1, le=3650, description="how long it is remembered how a session ended"
    )
    max_sessions: Annotated[int, Number] = Field(
        10_000, ge=1, le=1_000_000, description="tracked sessions a principal may have"
    )
    max_running_turns: Annotated[int, Number] = Field(
        0,
        ge=0,
        le=100_000,
        description="turns that run at once on this database, of all callers; 0: unlimited",
    )
    max_output_chars: Annotated[int, Number] = Field(
        20_000,
        ge=200,
        le=40_000,  # the whole result stays under 45,000 (contract §3)
        description="the longest answer in a result, where a call does not ask for another length"
        " (`max-output-chars`, up to 40000); of a longer one head and tail",
    )
    response_loop_limit: Annotated[int, Number] = Field(
        6,
        ge=0,
        le=1000,
        description="so many answers in a row without progress stop a turn (0: never)",
    )
    codex_tools: bool = Field(
        default=False,
        description="also offer `codex` and `codex-reply`, for callers of the Codex MCP server",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Choice] = Field(
        "info", description="the least level that is logged, to standard error"
    )
    log_format: Annotated[
        Literal["text", "json"] | None, Choice, Note(default="`text` on a terminal, else `json`")
    ] = Field(None, description="how a log line looks")

    log_content: bool = Field(
        default=False, description="log prompts and answers, too: they may hold secrets"
    )

    #: no setting: variables that look like ours and come from Kubernetes' service links
    ignored_variables: tuple[str, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read nothing by itself: `settings_env` reads each source and remembers which it was."""
        return (init_settings,)


#: every setting, in the order of the documentation
NAMES = tuple(name for name in Settings.model_fields if name != "ignored_variables")
SECRETS = frozenset({"server_password", "auth_tokens"})


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()
