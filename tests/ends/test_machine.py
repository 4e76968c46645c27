"""Drive the state machine: a little here, for long with `make soak STEPS=…`."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from opencode_mcp.engine import finisher, recovery
from tests.ends.machine import Ends

#: of all examples together
_STEPS = int(os.environ.get("SOAK_STEPS", "0"))
_STEPS_EACH = 25


@pytest.mark.usefixtures("soon")
@pytest.mark.timeout(0 if _STEPS else 120)
def test_what_we_promise_holds_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (finisher, recovery):  # longer than any start here takes
        monkeypatch.setattr(module, "OLD_START", timedelta(seconds=5))
    run_state_machine_as_test(
        Ends,
        settings=settings(
            max_examples=max(1, _STEPS // _STEPS_EACH) if _STEPS else 6,
            stateful_step_count=_STEPS_EACH,
            derandomize=not _STEPS,
            deadline=None,
            # a failure is shown as it came: making it smaller takes minutes
            phases=list(Phase) if _STEPS else [Phase.generate],
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
