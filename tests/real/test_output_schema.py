"""An `output-schema` on the real OpenCode: how it asks its model, and what comes of the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.real.support.model_requests import turns_of

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.bridges import RealBridges

SCHEMA = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


async def test_the_model_is_told_of_the_schema_and_its_answer_is_judged_after_a_restart_too(
    bridges: RealBridges, model: ScriptedModel, project: Path
) -> None:
    """OpenCode: with `format` an unfit answer is lost (facts 2.6), so it is never sent."""
    bridge = await bridges.attached()
    first = await bridge.start(
        'SAY:Well.\nSAY:```json\nSAY:{"done": true}\nSAY:```', project, output_schema=SCHEMA
    )
    session_id = first.session_id
    unfit = await bridge.call(
        "opencode-reply", sessionId=session_id, prompt='SAY:{"done": 1}', output_schema=SCHEMA
    )
    await bridge.close()
    bridge = await bridges.attached()
    again = await bridge.status(session_id)
    plain = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:so")
    await bridge.end(session_id)

    assert (first.status, first.structured["structuredOutputStatus"]) == ("completed", "valid")
    assert first.structured["structuredOutput"] == {"done": True}
    assert (unfit.status, unfit.structured["structuredOutputStatus"]) == ("completed", "invalid")
    assert "#/done" in unfit.structured["structuredOutputError"]["message"]
    for name in ("structuredOutputStatus", "structuredOutputError"):
        assert again.structured[name] == unfit.structured[name]
    assert "structuredOutputStatus" not in plain.structured
    asked = turns_of(model, session_id)
    systems = [request.body["messages"][0] for request in asked]
    assert [one["role"] for one in systems] == ["system"] * 3
    schema = json.dumps(SCHEMA, separators=(",", ":"))
    assert [schema in str(one["content"]) for one in systems] == [True, True, False]
    for request in asked:
        assert "response_format" not in request.body
        assert "StructuredOutput" not in request.tools
