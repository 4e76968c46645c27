"""What callers ask for, already checked for its form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opencode_mcp.engine.ids import new_token
from opencode_mcp.records import ApprovalPolicy, Principal, Sandbox

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.records import RequestClaim


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
    #: JSON; None: the answer need not fit any
    output_schema: str | None = None
    sandbox: Sandbox = Sandbox.WORKSPACE_WRITE
    approval_policy: ApprovalPolicy = ApprovalPolicy.NEVER
    #: the request-id that the turn is bound to
    claim: RequestClaim | None = None
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
    #: of this turn alone: without one it need not fit any, whatever earlier turns asked for
    output_schema: str | None = None
    claim: RequestClaim | None = None


@dataclass(slots=True)
class RepeatableCall:
    """A call with a request-id, and what is found out about it for its answer."""

    owner: str
    request_id: str
    #: of the tool and of the arguments that decide what is sent
    digest: str
    #: names this call among all that bring the same request-id
    token: str = field(default_factory=new_token)
    #: the answer is about what an earlier call began: this one sends nothing
    replayed: bool = False
    #: until when the request-id is remembered; None: it is not
    expires_at: datetime | None = None
