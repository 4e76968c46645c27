"""What a sandbox denies: never less than a wider one, and nothing but denies."""

from __future__ import annotations

import itertools

import pytest

from opencode_mcp.engine.sandboxes import denied_permissions
from opencode_mcp.records import ApprovalPolicy, Sandbox


@pytest.mark.parametrize(
    ("sandbox", "denied"),
    [
        (Sandbox.READ_ONLY, {"edit", "bash", "external_directory"}),
        (Sandbox.WORKSPACE_WRITE, {"external_directory"}),
        (Sandbox.DANGER_FULL_ACCESS, set()),
    ],
)
def test_each_sandbox_denies_what_the_readme_says(sandbox: Sandbox, denied: set[str]) -> None:
    assert set(denied_permissions(sandbox, ApprovalPolicy.CALLER)) == denied


@pytest.mark.parametrize("policy", ApprovalPolicy)
def test_the_question_tool_is_there_where_somebody_can_answer(policy: ApprovalPolicy) -> None:
    denied = denied_permissions(Sandbox.DANGER_FULL_ACCESS, policy)
    assert ("question" in denied) is (policy is ApprovalPolicy.NEVER)


def test_a_narrower_sandbox_denies_all_that_a_wider_one_does() -> None:
    for narrow, wide in itertools.pairwise(Sandbox):
        assert narrow.is_within(wide)
        assert not wide.is_within(narrow)
        policy = ApprovalPolicy.CALLER
        assert set(denied_permissions(narrow, policy)) > set(denied_permissions(wide, policy))
