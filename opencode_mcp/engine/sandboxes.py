"""What each sandbox denies, as names of OpenCode's permissions.

Rules only ever deny. A session's rules come after those of OpenCode's configuration and of the
agent, and the last match wins (facts 5.9): so a profile narrows whatever the project allows and
widens nothing, and its denies are handed down to sub-agents (tried, also for `explore`, whose own
rules allow bash).

A permission that is denied for every pattern takes its tools away from the model: `edit` takes
edit, write and apply_patch, `bash` takes bash, `question` takes question. `external_directory`
covers the paths outside the session's folder that OpenCode sees in a tool's arguments.

They guide an agent; they do not confine it. Not covered: what a shell command does by itself (a
redirect to a path outside was let through), the network, tools of MCP servers and plug-ins, links
that lead outside, and what somebody granted with `always` for paths outside in the same project
(that beat this deny when tried).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from opencode_mcp.records import ApprovalPolicy, Sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping

#: `task` is in none: sub-agents are denied the same, and their asks, aborts and ends hold (tried)
_BY_SANDBOX: Mapping[Sandbox, tuple[str, ...]] = MappingProxyType(
    {
        Sandbox.READ_ONLY: ("edit", "bash", "external_directory"),
        Sandbox.WORKSPACE_WRITE: ("external_directory",),
        Sandbox.DANGER_FULL_ACCESS: (),
    }
)


def denied_permissions(sandbox: Sandbox, policy: ApprovalPolicy) -> tuple[str, ...]:
    """Return what a session of this sandbox and policy is denied, for every pattern.

    Where nobody answers, the question tool is taken away: a rejected question ends its turn,
    since there is no telling the model why (facts 5.8), while a model without the tool goes on.
    """
    unanswerable = ("question",) if policy is ApprovalPolicy.NEVER else ()
    return (*_BY_SANDBOX[sandbox], *unanswerable)
