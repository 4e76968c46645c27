"""Look at one turn: read what decides, and judge it.

An observer keeps what a single look cannot know: since when the session is idle, whether it was
ever seen busy, whether it is proven that nothing of the turn runs any more.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from opencode_mcp.engine.history import TurnHistory, read_turn
from opencode_mcp.engine.outcome import Evidence, TurnStatus, Verdict, judge
from opencode_mcp.engine.reading import read_asks, read_tree
from opencode_mcp.engine.steps import is_finished_while_listed_as_busy
from opencode_mcp.engine.together import together
from opencode_mcp.engine.whose_data import refuse_foreign_data
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode_errors import OpencodeNotFoundError
from opencode_mcp.records import Submission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.approvals import Approvals
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.opencode.models import Message, RemoteStatus
    from opencode_mcp.opencode.watch import Watch
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

#: how often to look while the evidence is not clear yet (idle without an end: facts 3.8, 9.2)
UNCLEAR_POLL_S = 0.1
#: idle for so long without a terminal message: nothing more will come
SETTLE_S = 2.0
#: the same, while the prompt itself is not visible: 1.3 s was seen for 3.4 MB (facts 4.6)
SETTLE_UNSEEN_S = 10.0
#: busy for so long after a message that ends the turn: the answer is given (case B07)
BUSY_SETTLE_S = 3.0


class Observer:
    """Reads one turn of one session through that session's own instance."""

    def __init__(  # noqa: PLR0913 - a turn, and the parts that reading it takes
        self,
        connection: Connection,
        session: Session,
        turn: Turn,
        *,
        store: Store,
        clock: Clock,
        approvals: Approvals,
    ) -> None:
        self.connection = connection
        self.session = session
        self.turn = turn
        #: the prompt's own message was read: an abort cannot be lost any more (facts 4.6)
        self.seen = False
        #: OpenCode's status has listed the session since the prompt was sent
        self._seen_busy = False
        #: nothing of the turn runs any more (contract §2.2): an abort of ours was answered and
        #: the session stayed quiet, or its instance is dead, or somebody saw it to be over before
        self.proven_over = turn.finished_at is not None or turn.submission is Submission.REFUSED
        self._approvals = approvals
        self._store = store
        self._clock = clock
        self.history = TurnHistory(turn)
        #: what events tell of the turn, while somebody follows them
        self.watch: Watch | None = None
        self._idle_since: float | None = None
        self._finished_since: float | None = None

    @property
    def seen_busy(self) -> bool:
        """Whether the turn is known to have begun: by a read, or by an event."""
        return self._seen_busy or (self.watch is not None and self.watch.was_busy)

    def saw_busy(self) -> None:
        """Note that somebody else's read has seen it busy."""
        self._seen_busy = True

    @property
    def is_unclear(self) -> bool:
        """Whether status and messages do not fit together (yet): look again soon."""
        return self._idle_since is not None or self._finished_since is not None

    @property
    def settles_by_waiting(self) -> bool:
        """Whether an idle session without an end settles in time, without anything being done.

        Not if the turn was asked to stop (only stopping it proves anything), nor in quarantine
        (the prompt may still come).
        """
        asked = self.turn.stop_reason is not None
        return self.proven_over or not (asked or self.session.phase is Phase.QUARANTINED)

    async def look(self) -> Verdict:
        """Read what is known now, and judge it.

        Raises OpencodeError, StoreError, InstanceUnreachableError.
        """
        client, session = self.connection.client, self.session
        try:
            statuses, read = await together(
                client.statuses(session.directory), self.history.read(client)
            )
        except OpencodeNotFoundError:
            return await self._session_is_gone()
        status = statuses.get(session.id)
        self.seen |= bool(read.messages)
        if status is None:
            self._approvals.saw_none()
        else:
            self._idle_since = None
            self._seen_busy = True
            self.proven_over = False  # a stopped session that turns busy is stopped again
            tree = await read_tree(client, session, timeout_s=None)
            self._approvals.saw((await read_asks(client, tree, timeout_s=None)).all, tree)
        settled = status is None and await self._is_settled(seen=bool(read.messages))
        found = judge(
            Evidence(
                messages=read.messages,
                status=status,
                pending=self._approvals.asks,
                stop_reason=self.turn.stop_reason,
                settled=settled,
                overdue_busy=self._is_overdue(status, read.messages),
                unread=read.unread,
                session_error=self.watch.fault if self.watch else None,
            )
        )
        return self._approvals.annotated(found)

    async def look_until_clear(self) -> Verdict:
        """Judge the turn once, for somebody who has not observed it.

        Idle without an end is looked at again until it is settled, bounded by the settle time.
        """
        while True:
            verdict = await self.look()
            if verdict.is_over or not self.is_unclear or not self.settles_by_waiting:
                return verdict
            await self._clock.sleep(UNCLEAR_POLL_S)

    async def look_back(self, next_prompt: str | None) -> Verdict:
        """Judge a turn that another has followed: what the session does now is not its doing.

        `next_prompt`: the id of the message that began the turn after it. Raises OpencodeError.
        """
        read = await read_turn(self.connection.client, self.turn)
        messages = list(itertools.takewhile(lambda m: m.info.id != next_prompt, read))
        return judge(Evidence(messages, None, (), self.turn.stop_reason, settled=True))

    def _is_overdue(self, status: RemoteStatus | None, messages: Sequence[Message]) -> bool:
        """Whether the status has said busy for `BUSY_SETTLE_S` after the final answer (B07)."""
        if status is None or not is_finished_while_listed_as_busy(messages):
            self._finished_since = None
            return False
        now = self._clock.monotonic()
        if self._finished_since is None:
            self._finished_since = now
        return now - self._finished_since >= BUSY_SETTLE_S

    async def _is_settled(self, *, seen: bool) -> bool:
        """Whether nothing more will come of a session that is idle."""
        now = self._clock.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        if self.proven_over:
            return True
        if self.session.phase is Phase.QUARANTINED:  # the prompt may still come
            return False
        if now - self._idle_since < (SETTLE_S if seen else SETTLE_UNSEEN_S):
            return False
        # Another process may have asked it to stop; its abort may leave no trace (facts 4.4).
        self.turn = await self._store.turn(self.session.id, self.turn.number) or self.turn
        self.proven_over = self.turn.finished_at is not None
        return self.proven_over or self.turn.stop_reason is None

    async def _session_is_gone(self) -> Verdict:
        """Judge a turn whose session OpenCode does not know: ended by us, or deleted elsewhere.

        Raises InstanceUnreachableError where it may be another OpenCode with other data.
        """
        tracked = await self._store.resolve(self.session.id)
        if tracked is not None and not self.seen:
            await refuse_foreign_data(self._store, self.connection, self.session, lambda: None)
        reason = "the session was ended" if tracked is None else "the session was deleted"
        return Verdict(TurnStatus.CANCELLED, warnings=(("SESSION_GONE", reason),))
