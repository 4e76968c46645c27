"""The settings themselves: name, kind, bounds, default and meaning, once.

`docs/configuration.md`, the README's table and `config.example.toml` are checked against this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from opencode_mcp import settings_values as values
from opencode_mcp.records import ApprovalPolicy, EndAction, ExitAction, InstanceKind, Sandbox

PREFIX = "OPENCODE_MCP_"


@dataclass(frozen=True, slots=True)
class Note:
    """What a fault's text and the documentation say where kind and default do not tell it."""

    #: completes "must be …"
    allowed: str = ""
    #: stands for a default that depends on the machine
    default: str = ""


def default_database() -> Path:
    """Return the tracking database's place in the user's state folder."""
    return platformdirs.user_state_path("opencode-mcp") / "opencode-mcp.db"


_MAX_SECONDS = 604_800  # a week: longer is a unit mistake
_Number = BeforeValidator(values.no_boolean)
_Choice = BeforeValidator(values.lower_case)
_AbsolutePath = AfterValidator(values.absolute_path)


class Settings(BaseSettings):
    """All settings, checked and complete. Durations are whole seconds.

    Made by `settings.load_settings` alone: constructing it reads neither environment nor files.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="forbid",
        validate_default=False,  # the defaults are in their final form
        enable_decoding=False,  # lists are comma separated, not JSON
        hide_input_in_errors=True,  # an input may be a password
    )

    mode: Annotated[
        InstanceKind, _Choice, Note(default="`attach` if a URL is set, else `managed`")
    ] = Field(description="use a running OpenCode, or start one at the first call that needs it")
    server_url: Annotated[
        str | None, AfterValidator(values.server_url), Note("an http:// or https:// address")
    ] = Field(None, description="attach: the address of the running OpenCode")
    server_username: Annotated[str, AfterValidator(values.user_name), Note("a name")] = Field(
        "opencode", description="attach: its user name; else `OPENCODE_SERVER_USERNAME`"
    )
    server_password: Annotated[SecretStr | None, Note("text")] = Field(
        None, description="attach: its password; else `OPENCODE_SERVER_PASSWORD`"
    )
    server_password_file: Annotated[Path | None, _AbsolutePath, Note("an absolute path")] = Field(
        None, description="attach: a file whose only line is the password"
    )
    allow_insecure_http: bool = Field(
        default=False, description="allow plain http to an OpenCode beyond loopback"
    )
    opencode_bin: Annotated[str, AfterValidator(values.plain_name), Note("a name or a path")] = (
        Field("opencode", description="managed: the program, by name (found in `PATH`) or path")
    )
    serve_args: Annotated[
        tuple[str, ...],
        BeforeValidator(values.shell_words),
        AfterValidator(values.serve_args),
        Note("shell words", default="none"),
    ] = Field((), description="managed: more arguments for `opencode serve`; not its address")
    child_env: Annotated[
        tuple[str, ...],
        BeforeValidator(values.comma_list),
        AfterValidator(values.child_names),
        Note("names of variables, or `PREFIX_*`, separated by commas", default="none"),
    ] = Field((), description="managed: variables that OpenCode gets besides the usual ones")
    airgap: bool = Field(
        default=True,
        description="managed: OpenCode neither updates itself nor shares nor downloads",
    )
    database: Annotated[
        Path,
        _AbsolutePath,
        Note(
            "an absolute path", default="`opencode-mcp/opencode-mcp.db` in the user's state folder"
        ),
    ] = Field(default_factory=default_database, description="the tracking database")
    default_cwd: Annotated[
        Path | None,
        _AbsolutePath,
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
    default_sandbox: Annotated[Sandbox, _Choice] = Field(
        Sandbox.WORKSPACE_WRITE, description="the sandbox of a session that names none"
    )
    default_approval_policy: Annotated[ApprovalPolicy, _Choice] = Field(
        ApprovalPolicy.NEVER, description="who answers the asks of a session that does not say"
    )
    max_sandbox: Annotated[Sandbox, _Choice] = Field(
        Sandbox.DANGER_FULL_ACCESS, description="the widest sandbox that a caller may ask for"
    )
    allowed_approval_policies: Annotated[
        tuple[ApprovalPolicy, ...],
        BeforeValidator(values.comma_list),
        Note(
            "one or more of never, on-request, caller, separated by commas",
            default="`never,on-request,caller`",
        ),
        Field(min_length=1),
    ] = Field(tuple(ApprovalPolicy), description="the approval policies that callers may ask for")
    default_wait_seconds: Annotated[int, _Number] = Field(
        50,
        ge=0,
        le=600,
        description="how long a call watches its turn (many clients give up at 60)",
    )
    on_call_cancel: Annotated[Literal["abort", "keep"], _Choice] = Field(
        "abort",
        description="when the client cancels the call that owns a turn: stop it or let it run",
    )
    turn_timeout_seconds: Annotated[int, _Number] = Field(
        3600, ge=1, le=_MAX_SECONDS, description="a turn that names no limit is stopped after this"
    )
    max_turn_timeout_seconds: Annotated[int, _Number] = Field(
        21_600, ge=1, le=_MAX_SECONDS, description="the longest limit a caller may ask for"
    )
    approval_timeout_seconds: Annotated[int, _Number] = Field(
        600, ge=1, le=_MAX_SECONDS, description="a permission or question is rejected after this"
    )
    startup_timeout_seconds: Annotated[int, _Number] = Field(
        60, ge=1, le=600, description="managed: how long OpenCode may take to come up"
    )
    request_timeout_seconds: Annotated[int, _Number] = Field(
        30, ge=1, le=600, description="one request to OpenCode, retries included"
    )
    cleanup_timeout_seconds: Annotated[int, _Number] = Field(
        15, ge=1, le=600, description="how long an end may take before it is reported unconfirmed"
    )
    end_action: Annotated[EndAction, _Choice] = Field(
        EndAction.DELETE, description="what an end does with the session's data in OpenCode"
    )
    session_idle_ttl_seconds: Annotated[int, _Number] = Field(
        0,
        ge=0,
        le=31_536_000,
        description="sessions that nobody used for so long are ended, with `END_ACTION`; 0: never",
    )
    on_exit: Annotated[ExitAction, _Choice] = Field(
        ExitAction.ABORT,
        description="the turns of this process when it exits: stop them, end their sessions, or"
        " let them run on (attach only)",
    )
    tombstone_days: Annotated[int, _Number] = Field(
        7, ge=1, le=3650, description="how long it is remembered how a session ended"
    )
    max_sessions: Annotated[int, _Number] = Field(
        10_000, ge=1, le=1_000_000, description="tracked sessions a principal may have"
    )
    max_running_turns: Annotated[int, _Number] = Field(
        0,
        ge=0,
        le=100_000,
        description="turns that run at once on this database, of all callers; 0: unlimited",
    )
    max_output_chars: Annotated[int, _Number] = Field(
        20_000,
        ge=200,
        le=40_000,  # the whole result stays under 45,000 (contract §3)
        description="the longest answer in a result; of a longer one head and tail",
    )
    response_loop_limit: Annotated[int, _Number] = Field(
        6,
        ge=0,
        le=1000,
        description="so many answers in a row without progress stop a turn (0: never)",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _Choice] = Field(
        "info", description="the least level that is logged, to standard error"
    )
    log_format: Annotated[
        Literal["text", "json"] | None, _Choice, Note(default="`text` on a terminal, else `json`")
    ] = Field(None, description="how a log line looks")

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
SECRETS = frozenset({"server_password"})


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()
