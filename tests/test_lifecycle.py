"""Every pair of phases: in the table, or refused."""

from __future__ import annotations

from itertools import product

import pytest

from opencode_mcp.lifecycle import MOVES, IllegalMoveError, Phase, check_move

ALLOWED = {
    (Phase.ACTIVE, Phase.QUARANTINED),
    (Phase.ACTIVE, Phase.ENDING),
    (Phase.QUARANTINED, Phase.ACTIVE),
    (Phase.QUARANTINED, Phase.ENDING),
    (Phase.ENDING, Phase.ENDING),
    (Phase.ENDING, Phase.ENDED),
}


@pytest.mark.parametrize(("old", "new"), list(product(Phase, Phase)))
def test_move_is_in_the_table_or_refused(old: Phase, new: Phase) -> None:
    if (old, new) in ALLOWED:
        assert check_move(old, new) is new
    else:
        with pytest.raises(IllegalMoveError):
            check_move(old, new)


def test_every_phase_has_a_row_and_only_ended_is_final() -> None:
    assert set(MOVES) == set(Phase)
    assert {phase for phase, onward in MOVES.items() if not onward} == {Phase.ENDED}


def test_no_way_leads_back_from_an_accepted_end() -> None:
    assert Phase.ACTIVE not in MOVES[Phase.ENDING]
    assert Phase.QUARANTINED not in MOVES[Phase.ENDING]
