"""What callers choose of sandbox and approval policy, and what they answer to an ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opencode_mcp.callers.arguments import StartArguments
from opencode_mcp.engine.answers import Allow, Answer, Reject
from opencode_mcp.errors import InvalidArgumentError, PolicyNotAllowedError
from opencode_mcp.records import ApprovalPolicy, Sandbox

if TYPE_CHECKING:
    from opencode_mcp.callers.arguments import ApproveArguments
    from opencode_mcp.settings import Settings

#: contract §2.1: what a stateless connection costs
_ASKED_OVER_HTTP = (
    " Over HTTP that takes protocol 2026-07-28; for others it is rejected at once: use caller."
)


def chosen_rules(arguments: StartArguments, settings: Settings) -> tuple[Sandbox, ApprovalPolicy]:
    """Return a new session's sandbox and approval policy.

    Raises PolicyNotAllowedError for what lies beyond the operator's ceiling.
    """
    sandbox = Sandbox(arguments.sandbox or settings.default_sandbox)
    policy = ApprovalPolicy(arguments.approval_policy or settings.default_approval_policy)
    check_rules(sandbox, policy, settings)
    return sandbox, policy


def check_rules(sandbox: Sandbox, policy: ApprovalPolicy, settings: Settings) -> None:
    """Raise PolicyNotAllowedError for what lies beyond the operator's ceiling."""
    if not sandbox.is_within(settings.max_sandbox):
        msg = (
            f"sandbox {sandbox.value} is wider than this server allows: the widest is"
            f" {settings.max_sandbox.value}. Nothing was sent."
        )
        raise PolicyNotAllowedError(msg)
    if policy not in settings.allowed_approval_policies:
        allowed = ", ".join(settings.allowed_approval_policies)
        msg = (
            f"approval-policy {policy.value} is not allowed on this server; allowed: {allowed}."
            " Nothing was sent."
        )
        raise PolicyNotAllowedError(msg)


def rule_properties(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what the settings change in the input schemas: the ceilings, and who can be asked."""
    about = StartArguments.model_fields["approval_policy"].description or ""
    return {
        "sandbox": {
            "enum": [box.value for box in Sandbox if box.is_within(settings.max_sandbox)],
            "default": settings.default_sandbox.value,
        },
        "approval-policy": {
            "enum": [policy.value for policy in settings.allowed_approval_policies],
            "default": settings.default_approval_policy.value,
            "description": about + (_ASKED_OVER_HTTP if settings.transport == "http" else ""),
        },
    }


def answer_given(arguments: ApproveArguments) -> Answer:
    """Return what the caller answers. Raises InvalidArgumentError for what does not go together."""
    if arguments.decision == "allow":
        if arguments.feedback is not None:
            msg = "feedback only goes with decision reject"
            raise InvalidArgumentError(msg)
        return Allow(tuple(tuple(answer) for answer in arguments.answers or ()))
    if arguments.answers is not None:
        msg = "answers only go with decision allow"
        raise InvalidArgumentError(msg)
    return Reject(arguments.feedback)
