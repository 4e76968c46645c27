"""What callers ask for, already checked for its form."""

from __future__ import annotations

from dataclasses import dataclass

from opencode_mcp.records import ApprovalPolicy, Principal, Sandbox


@dataclass(frozen=True, slots=True)
class LooseModel:
    """A model as `provider/model`, or by its bare name; `preferred`: the provider to prefer."""

    name: str
    preferred: str | None


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Start a session in `directory` and run its first turn. Times in seconds."""

    owner: str
    prompt: str
    directory: str | None
    timeout_s: float
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    title: str | None = None
    sandbox: Sandbox = Sandbox.WORKSPACE_WRITE
    approval_policy: ApprovalPolicy = ApprovalPolicy.NEVER
    #: instead of `model`: a name that may lack its provider
    loose_model: LooseModel | None = None


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """Run another turn. Options that are None stay as they are stored."""

    asker: Principal
    session_id: str
    prompt: str
    timeout_s: float
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    developer_instructions: str | None = None
