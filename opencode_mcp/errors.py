"""Every error that crosses a floor, in one tree.

    OpencodeMcpError
    ├── ConfigError                    settings unusable; start-up only, exit code 2
    ├── ListenError                    the address to listen at cannot be had; start-up only
    ├── CallerError                    a tool cannot do what was asked; the text is for the caller
    │   ├── InvalidArgumentError
    │   ├── PathNotAllowedError
    │   ├── PolicyNotAllowedError      beyond the operator's ceiling
    │   ├── SessionNotFoundError       unknown, ended, or somebody else's: one answer for all
    │   ├── SessionBusyError           a turn runs, or an end was accepted
    │   ├── SessionCapacityError
    │   ├── RunCapacityError           as many turns run as the operator allows
    │   ├── TurnNotFoundError
    │   ├── ApprovalNotFoundError      that ask does not wait, or nothing waits for its answer
    │   ├── SubmissionUnconfirmedError OpenCode may or may not have the prompt
    │   ├── EndConflictError           archive asked over a pending delete
    │   ├── OutputNotReadyError        its turn is not over yet
    │   ├── OutputUnavailableError     the turn left nothing of that kind, or it cannot be read
    │   ├── SnapshotExpiredError       the pages of that snapshot can be had no more
    │   ├── InvalidOutputSchemaError
    │   │   └── SchemaNotCheckedError  nothing is wrong with it: the machine was too busy
    │   ├── RequestIdConflictError     the same request-id came with other arguments
    │   ├── RequestPendingError        the first call of that request-id has not begun its turn yet
    │   ├── RequestEndedError          the session of that request-id has been ended
    │   ├── InstanceUnreachableError   the session's OpenCode cannot be asked from here
    │   └── ShuttingDownError
    ├── OpencodeError                  the other side; carries method, path and status
    │   ├── OpencodeUnavailableError   (ConnectionError) refused, reset, 502, 503, 504
    │   │   ├── OpencodeTimeoutError   (TimeoutError)
    │   │   └── OpencodeStartError     a managed OpenCode did not come up
    │   ├── OpencodeOverloadedError    429
    │   ├── OpencodeUnauthorizedError  401, 403
    │   ├── OpencodeNotFoundError      404 with a JSON body
    │   ├── OpencodeRefusedError       any other 4xx: our bug, or another version
    │   ├── OpencodeFailedError        500
    │   ├── OpencodeProtocolError      an answer we cannot read: HTML, cut JSON, another shape
    │   ├── OpencodeUnsupportedError   not an OpenCode that this program can drive
    │   └── ResponseTooLargeError
    └── StoreError                     the tracking database
        ├── SchemaTooNewError
        ├── MigrationError
        ├── StaleSessionError          the row is not what the caller read: read again, decide again
        ├── LeaseLostError             somebody else took the lease, or the session has ended
        └── StoreUnusableError         cannot be opened, locked, read or written

Outside the tree: `lifecycle.IllegalMoveError`, a bug of ours.

The type carries the decision: nothing reads an error's text or status to decide. `name` is the
contract's `error.name`; `retryable` says that the fault may pass, and is never leave to send a
prompt again.
"""

from __future__ import annotations

from typing import ClassVar


class OpencodeMcpError(Exception):
    """The base of the tree. `str(error)` says what happened and what to do next."""

    name: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False


class ConfigError(OpencodeMcpError):
    """Settings are unusable; the text lists every fault, one a line, and never a secret."""


class ListenError(OpencodeMcpError):
    """The address to listen at cannot be had; the text names it."""


class CallerError(OpencodeMcpError):
    """A tool cannot do what was asked. `session_id`: the session it concerns, if any."""

    def __init__(self, message: str, *, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id


class InvalidArgumentError(CallerError):
    """An argument is missing, unknown, of the wrong kind or out of range."""

    name = "INVALID_ARGUMENT"


class PathNotAllowedError(CallerError):
    """A folder is not absolute, does not exist, or lies outside the allowed roots."""

    name = "PATH_NOT_ALLOWED"


class PolicyNotAllowedError(CallerError):
    """A sandbox or an approval policy that this server's operator does not allow."""

    name = "POLICY_NOT_ALLOWED"


class SessionNotFoundError(CallerError):
    """No session of this caller has that id: unknown, ended, or somebody else's."""

    name = "SESSION_NOT_FOUND"


class SessionBusyError(CallerError):
    """No new turn now: one is running, or the session is being ended or quarantined."""

    name = "SESSION_BUSY"
    retryable = True


class SessionCapacityError(CallerError):
    """The caller has as many tracked sessions as this server allows."""

    name = "SESSION_CAPACITY"


class RunCapacityError(CallerError):
    """As many turns run on this database as the operator allows."""

    name = "RUN_CAPACITY"
    retryable = True


class TurnNotFoundError(CallerError):
    """The session has no turn of that id."""

    name = "TURN_NOT_FOUND"


class ApprovalNotFoundError(CallerError):
    """An ask does not wait: unknown, answered already, or left behind by a turn that is over."""

    name = "APPROVAL_NOT_FOUND"


class SubmissionUnconfirmedError(CallerError):
    """A prompt was sent and its answer lost; whether OpenCode has it is not known."""

    name = "SUBMISSION_UNCONFIRMED"


class EndConflictError(CallerError):
    """An archive was asked for while a delete of the same session is pending."""

    name = "END_CONFLICT"


class OutputNotReadyError(CallerError):
    """The turn is not over: what it leaves can be read then."""

    name = "OUTPUT_NOT_READY"
    retryable = True


class OutputUnavailableError(CallerError):
    """The turn left nothing of that kind, or OpenCode does not have it any more."""

    name = "OUTPUT_UNAVAILABLE"


class SnapshotExpiredError(CallerError):
    """What a snapshot-id pinned has changed and is not kept any more: begin at offset 0."""

    name = "SNAPSHOT_EXPIRED"


class InvalidOutputSchemaError(CallerError):
    """An output-schema is no JSON Schema, or beyond what this server takes."""

    name = "INVALID_OUTPUT_SCHEMA"


class SchemaNotCheckedError(InvalidOutputSchemaError):
    """Whether an output-schema can be taken could not be found out now."""

    retryable = True


class RequestIdConflictError(CallerError):
    """A request-id was used before with other arguments."""

    name = "REQUEST_ID_CONFLICT"


class RequestPendingError(CallerError):
    """The first call of a request-id is on its way: whether its turn began is not known yet."""

    name = "REQUEST_PENDING"
    retryable = True


class RequestEndedError(CallerError):
    """The session that a request-id began has been ended: nothing of it can be told any more."""

    name = "REQUEST_ENDED"


class InstanceUnreachableError(CallerError):
    """The OpenCode instance that runs the session lives, or may live, but not within reach."""

    name = "OPENCODE_UNAVAILABLE"
    retryable = True


class ShuttingDownError(CallerError):
    """This server is about to exit and takes no new work."""

    name = "SHUTTING_DOWN"
    retryable = True


class StoreError(OpencodeMcpError):
    """The tracking database cannot be used."""

    name = "TRACKING_UNAVAILABLE"
    retryable = True


class SchemaTooNewError(StoreError):
    """The database was written by a newer release; the text names both versions."""


class MigrationError(StoreError):
    """A migration failed and left nothing behind; the text names the file."""


class StaleSessionError(StoreError):
    """The session's row is not what the caller read: changed or gone. Read again, decide again."""


class LeaseLostError(StoreError):
    """A write under a lease that somebody else has taken since, or whose session has ended."""


class StoreUnusableError(StoreError):
    """The database or its folder cannot be opened, locked, read or written."""
