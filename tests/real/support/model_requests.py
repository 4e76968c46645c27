"""What the scripted model was sent: a session's own requests, and what they told it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import ModelRequest, ScriptedModel
    from tests.real.support.witness import Witness


def turns_of(model: ScriptedModel, session_id: str) -> list[ModelRequest]:
    """Return a session's own requests to the model, without those for titles."""
    return [one for one in model.requests if one.session_id == session_id and one.tools]


def outputs(witness: Witness) -> str:
    """Return all that the newest request told the model."""
    request = witness.model.last_request
    assert request is not None
    return json.dumps(request.body["messages"])
