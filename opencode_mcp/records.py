"""What crosses the floors: frozen records and enums, without I/O.

Moments (`_at`) are aware UTC datetimes. Durations (`_s`) are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.lifecycle import Phase


class InstanceKind(StrEnum):
    """How we come to an OpenCode: we started it, or somebody pointed us at it."""

    MANAGED = "managed"
    ATTACH = "attach"


class EndAction(StrEnum):
    """What an end does with the session's data in OpenCode."""

    DELETE = "delete"
    ARCHIVE = "archive"


class ExitAction(StrEnum):
    """What becomes of the turns of a process that exits."""

    ABORT = "abort"
    END = "end"  # of their sessions too, with the default end action
    KEEP = "keep"  # they run on, and the next process observes them


class StopReason(StrEnum):
    """Why we asked a turn to stop. Needed because an abort may leave no trace (facts 4.4)."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    END = "end"
    LOOP = "loop"  # the provider's answers repeat without sense


class Sandbox(StrEnum):
    """What a session's agent may do, the narrowest first: rules that only ever deny."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"

    def is_within(self, ceiling: Sandbox) -> bool:
        """Whether it allows no more than `ceiling`."""
        order = list(Sandbox)
        return order.index(self) <= order.index(ceiling)


class ApprovalPolicy(StrEnum):
    """Who answers when OpenCode asks for a permission or an answer."""

    NEVER = "never"  # nobody: rejected at once, with a reason
    ON_REQUEST = "on-request"  # the person at the client, through MCP elicitation
    CALLER = "caller"  # whoever calls us, with opencode-approve


class AskKind(StrEnum):
    """What OpenCode waits for in the middle of a turn."""

    PERMISSION = "permission"
    QUESTION = "question"


class AnsweredBy(StrEnum):
    """Who answered an ask, or why it was rejected without anybody's word."""

    CALLER = "caller"
    PERSON = "person"
    NO_PERSON = "no_person"  # the client cannot ask one
    POLICY = "policy"  # the session's approval policy is never
    DEADLINE = "deadline"
    STOP = "stop"  # its turn was stopped, or its session ended
    LEFTOVER = "leftover"  # an earlier turn left it behind


class Submission(StrEnum):
    """What is known of a prompt on its way to OpenCode."""

    RECORDED = "recorded"  # the intent is durable; whether OpenCode has it, its message tells
    REFUSED = "refused"  # OpenCode provably never took it: no turn ran


@dataclass(frozen=True, slots=True)
class Instance:
    """One OpenCode, as contract §1 names it: execution lives in it and nowhere else."""

    id: str
    kind: InstanceKind
    #: attach: the normalised URL. managed: None (URL and password live in the instance file)
    url: str | None
    #: managed: hash of binary, arguments and child environment
    settings_key: str | None
    #: managed: the UUID kept in OpenCode's data folder; None until known
    data_id: str | None
    #: managed: its supervisor's lock was taken, so it and all it ran are gone
    dead: bool = False


#: over stdio, and on the command line, there is one: the person whose machine it is
LOCAL = "local"
#: over HTTP, where callers have no tokens
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks (contract §1): the owner of what they start."""

    #: `LOCAL`, `ANONYMOUS` or `token:<name>`
    name: str
    #: sees what others started, and may stop and end it; may not go on with it
    sees_all: bool = False

    def sees(self, owner: str) -> bool:
        """Whether a session of this owner exists for them."""
        return self.sees_all or owner == self.name


@dataclass(frozen=True, slots=True)
class StartIntent:
    """A session about to be created: lets a lost answer to the create be settled."""

    #: goes into the session's OpenCode metadata, so that it can be found again
    token: str
    owner: str
    instance_id: str
    directory: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Capacity:
    """The operator's ceilings, kept exactly: checked in the transaction that uses them up."""

    #: tracked sessions of one owner
    sessions: int
    #: turns that run at once, of everybody on this database; 0: unlimited
    running: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """An accepted end that is not confirmed yet."""

    action: EndAction
    since: datetime
    #: how many times the procedure was begun
    attempt: int = 0
    last_error: str | None = None
    #: a delete of ours was sent: from here on a 404 counts as deleted (contract §2.3, step 7)
    delete_sent: bool = False
    #: when it is tried again in the background; None: now
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A tracked session: what we want of it, never what it is doing."""

    id: str
    owner: str
    instance_id: str
    directory: str
    phase: Phase
    #: grows with every write; compare-and-set
    version: int
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    sandbox: Sandbox = Sandbox.DANGER_FULL_ACCESS
    approval_policy: ApprovalPolicy = ApprovalPolicy.NEVER
    #: how many turns were begun; the number of the newest one
    turn_count: int = 0
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and all that follows it until idle."""

    session_id: str
    #: 1, 2, 3, …
    number: int
    #: the id we gave to the prompt's user message, recorded before it was sent (facts 2.5)
    message_id: str
    #: id of the last message that was there before it; None: the history was empty
    boundary: str | None
    submission: Submission
    created_at: datetime
    deadline_at: datetime
    #: why we asked it to stop, if we did
    stop_reason: StopReason | None = None
    #: the process of ours that observes it; None: none is known
    holder: str | None = None
    #: when it was seen to be over; None: somebody has to bring it to its end
    finished_at: datetime | None = None
    #: the JSON Schema that its answer is to fit, as compact JSON; None: none was asked for
    output_schema: str | None = None


@dataclass(frozen=True, slots=True)
class RequestClaim:
    """What a caller's request-id stands for: one call, and the turn that it began."""

    owner: str
    request_id: str
    #: of the tool and the arguments that decide what is sent; none of their text is kept
    digest: str
    #: names the call that claimed it
    call: str
    #: the newest call that joined: it owns the turn
    newest_call: str
    #: the process of ours that the claiming call came to
    holder: str
    created_at: datetime
    expires_at: datetime
    #: the turn, once it is recorded; None: nothing was sent yet
    session_id: str | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """How a session ended; no content of it is kept."""

    session_id: str
    owner: str
    action: EndAction
    ended_at: datetime
    #: the answer that the end gave, as JSON, so that a late second end gets the same
    answer_json: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How many there are of what is tracked, of all processes on the database."""

    active: int
    quarantined: int
    #: ends that were accepted and are not confirmed
    ending: int
    #: how long ago the oldest of them was accepted, in seconds; 0: there is none
    ending_for_s: float
    #: turns that nobody has seen to be over
    open_turns: int
    #: those of them whose time limit is past
    overdue_turns: int
    #: sessions that are being created, or whose creation nobody settled
    starts: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act on one session's end; nobody else acts while it is held.

    `fence` grows with each new holder and guards every write made under the lease. `renewals` grows
    while its holder works: who sees both unchanged for long enough knows that it does not.
    """

    session_id: str
    #: the process's name; None: given back
    holder: str | None
    fence: int
    renewals: int = 0
