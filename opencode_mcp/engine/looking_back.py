"""Read the end of a turn that another has followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store


async def end_of_older(
    store: Store, instances: Instances, keepers: Keepers, session: Session, turn: Turn
) -> tuple[Session, Verdict]:
    """Return what a turn that is not the newest came to, and its session as it then is.

    Nothing is sent. Raises OpencodeError, InstanceUnreachableError.
    """
    reached = await instances.of(session)
    keeper = keepers.make(reached.connection, reached.session, turn)
    following = await store.turn(session.id, turn.number + 1)
    next_prompt = following.message_id if following else None
    return reached.session, await keeper.observer.look_back(next_prompt)
