"""The first settings: which OpenCode is used, how callers reach this server, and who they are.

`settings_model.Settings` adds the rest and is what the program uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from opencode_mcp import settings_values as values
from opencode_mcp import settings_web as web
from opencode_mcp.records import InstanceKind

PREFIX = "OPENCODE_MCP_"


@dataclass(frozen=True, slots=True)
class Note:
    """What a fault's text and the documentation say where kind and default do not tell it."""

    #: completes "must be …"
    allowed: str = ""
    #: stands for a default that depends on the machine
    default: str = ""


Number = BeforeValidator(values.no_boolean)
Choice = BeforeValidator(values.lower_case)
AbsolutePath = AfterValidator(values.absolute_path)
CommaList = BeforeValidator(values.comma_list)


class OpencodeSettings(BaseSettings):
    """Which OpenCode is used, and what it gets from us."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="forbid",
        validate_default=False,  # the defaults are in their final form
        enable_decoding=False,  # lists are comma separated, not JSON
        hide_input_in_errors=True,  # an input may be a password
    )

    mode: Annotated[
        InstanceKind, Choice, Note(default="`attach` if a URL is set, else `managed`")
    ] = Field(
        description="use a running OpenCode, or start one (at the first call that needs it; over"
        " HTTP at once)"
    )
    server_url: Annotated[
        str | None, AfterValidator(values.server_url), Note("an http:// or https:// address")
    ] = Field(None, description="attach: the address of the running OpenCode")
    server_username: Annotated[str, AfterValidator(values.user_name), Note("a name")] = Field(
        "opencode", description="attach: its user name; else `OPENCODE_SERVER_USERNAME`"
    )
    server_password: Annotated[SecretStr | None, Note("text")] = Field(
        None, description="attach: its password; else `OPENCODE_SERVER_PASSWORD`"
    )
    server_password_file: Annotated[Path | None, AbsolutePath, Note("an absolute path")] = Field(
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
        CommaList,
        AfterValidator(values.child_names),
        Note("names of variables, or `PREFIX_*`, separated by commas", default="none"),
    ] = Field((), description="managed: variables that OpenCode gets besides the usual ones")
    airgap: bool = Field(
        default=True,
        description="managed: OpenCode neither updates itself nor shares nor downloads",
    )
    allow_shared_managed: bool = Field(
        default=False,
        description="managed: let several principals share one OpenCode, whose agents can read what"
        " it can",
    )


class ServingSettings(OpencodeSettings):
    """How callers reach this server, and who they are."""

    transport: Annotated[Literal["stdio", "http"], Choice] = Field(
        "stdio", description="one client over stdin and stdout, or any number over HTTP"
    )
    host: Annotated[str, AfterValidator(web.listening_host), Note("a host name or an address")] = (
        Field("127.0.0.1", description="http: the address to listen at (image: `0.0.0.0`)")
    )
    port: Annotated[int, Number] = Field(
        8000, ge=0, le=65535, description="http: the port to listen at; 0: a free one, see the log"
    )
    http_path: Annotated[str, AfterValidator(web.http_path), Note("a path that begins with /")] = (
        Field("/mcp", description="http: where the MCP endpoint is")
    )
    allowed_hosts: Annotated[
        tuple[str, ...],
        CommaList,
        AfterValidator(web.host_patterns),
        Note(
            "names or addresses, separated by commas, each with a port or without (any port);"
            " `*.example.org` for all below, `*` for all",
            default="loopback names, any port",
        ),
    ] = Field(web.LOOPBACK_HOSTS, description="http: the names that callers may reach it under")
    allowed_origins: Annotated[
        tuple[str, ...],
        CommaList,
        AfterValidator(web.origins),
        Note("addresses such as https://chat.example.org, separated by commas", default="none"),
    ] = Field((), description="http: the web pages whose scripts may call it")
    auth_tokens: Annotated[
        tuple[web.NamedToken, ...],
        BeforeValidator(web.named_tokens),
        CommaList,  # the one above it gets what it made
        Note("name:token, separated by commas, each token at least 16 characters", default="none"),
    ] = Field((), description="http: who may call: the principal `token:<name>` by its token")
    auth_tokens_file: Annotated[Path | None, AbsolutePath, Note("an absolute path")] = Field(
        None, description="http: a file with one name:token a line, read again when it changes"
    )
    admins: Annotated[
        tuple[str, ...],
        CommaList,
        AfterValidator(web.principals),
        Note("principals (`token:<name>`), separated by commas", default="none"),
    ] = Field((), description="principals that see, stop and end the sessions of all")
    allow_anonymous: bool = Field(
        default=False, description="http: let anybody call who reaches this server"
    )
