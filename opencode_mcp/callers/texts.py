"""What the tools say of themselves. A model picks and calls a tool by this text alone."""

from __future__ import annotations

INSTRUCTIONS = """\
Delegates coding tasks to OpenCode agents. opencode starts a session and runs its first turn; \
opencode-reply runs another turn in it; opencode-status looks at sessions, waits for them or lists \
yours; opencode-cancel stops a turn and keeps the session; opencode-approve answers what an agent \
asks; opencode-output pages through what a turn left; opencode-info tells models, agents and \
limits; opencode-end stops and deletes (or archives) a session. A session stays until it is ended: \
end what you no longer need. When an answer says `running`, the turn goes on: look again with \
opencode-status, never send the prompt again."""

OPENCODE = """\
Start a new OpenCode session in a folder and run its first turn there: a coding agent that edits \
files and runs commands. Use opencode-reply to go on with a session that exists, opencode-info \
to see models, agents and folders.

Returns the agent's answer and a sessionId; hint names the next call. The call watches the turn \
for wait-seconds; if it is not over by then, the answer is `running` (not an error) and the turn \
goes on: call opencode-status. `waiting_for_approval`: with approval-policy caller answer with \
opencode-approve. `completed` proves that the turn ended, not that its work is right. `failed` and \
`timeout` are errors; resendSafety tells what a second try may repeat. Do not send the prompt \
again while its fate is open: each call starts another session, unless it repeats an earlier one's \
request-id, which is safe also after a lost answer or a restart. {cancelling} \
{on_cancel}. The agent changes files for real; nothing is undone when the session ends. sandbox \
guides it and is no jail: a shell command can still write anywhere. End each session with \
opencode-end when you are done."""

REPLY = """\
Send another prompt to a session that exists and run its next turn; the agent remembers earlier \
turns. Use opencode to start a new session, opencode-approve to answer what the agent asks.

One turn at a time: while one runs this is refused with SESSION_BUSY and nothing is sent; wait \
with opencode-status or stop it with opencode-cancel, then reply. cwd, sandbox and approval-policy \
stay as the session was started with. Results, files and next calls are as with opencode. Each \
call runs another turn, unless it repeats an earlier one's request-id: then it joins that one's. \
SUBMISSION_UNCONFIRMED: the prompt's fate is unknown; call opencode-status, do not send it again. \
SESSION_NOT_FOUND: it was ended or is not yours; start a new one. {cancelling} {on_cancel}."""

STATUS = """\
Look at one session (give one id), watch several (give ids), or list your tracked sessions (give \
none), the newest used first. Changes nothing and starts no turn; safe to repeat. Use \
opencode-output to read what a turn left in full, opencode-cancel to stop a turn.

With an id: where its newest turn stands, read from OpenCode now; hint names the next call. \
`running`, `stopping`: look again with wait-seconds, which returns as soon as there is news (over, \
or waiting for an answer); cancelling this call does not touch the turn. `waiting_for_approval`: \
opencode-approve answers if the session is caller; if it is on-request, a person is asked while \
this call watches. `completed`, `idle`, `cancelled`, `failed`, `timeout` (the last two as errors): \
opencode-reply or opencode-end. `ending` (accepted, not confirmed): opencode-end again. \
`quarantined` (a prompt's fate is unknown): do not send it again; look again or end. `unknown`: \
OpenCode cannot be asked now; look later.

With ids: `ready` when what wait-for asks for is there (see readyIds), else `waiting`; results \
share the room, so ask for one id to see more. A list comes in pages: nextOffset leads to the next \
one."""

CANCEL = """\
Ask the running turn of a session to stop; the session stays and can go on with opencode-reply. \
Use opencode-end instead to stop the turn and end the session, opencode-status only to look.

Sends an abort to OpenCode and watches for wait-ms. A request is not an outcome: `accepted` means \
that the stop is on its way, `done` that the turn is proven over; nextAction names the next call. \
`stopping`: not confirmed yet; it is tried until it is: call opencode-status with wait-seconds. \
`cancelled`: confirmed; what the agent did stays, and a process that one of its commands started \
may live on (a warning says so). Another status is the turn's own end, \
which came first; `alreadyDone`: it was over before this call and nothing was sent. Waiting \
permissions and questions of the turn are rejected. Repeating is safe, but without turnId it may \
meet a later turn."""

APPROVE = """\
Answer one thing that a session's agent waits for: a permission to use a tool, or a question. Only \
for sessions started with approval-policy caller whose status is `waiting_for_approval`; the ids \
are in pendingApprovals (see kind). Use opencode-reply to send a prompt, opencode-cancel to stop \
the turn.

`allow` grants a permission this once, never for later, or answers a question. `reject` with \
feedback tells the agent what to do instead and its turn goes on; without feedback, and always for \
a question, the turn ends. A rejection takes the session's other pending permissions along. What \
nobody answers within {ask_s} s is rejected.

Returns where the turn stands right after: mostly `running`: call opencode-status. \
`waiting_for_approval`: answer the next one. APPROVAL_NOT_FOUND: it does not wait any more \
(answered, too late, or the turn was stopped) and this call granted nothing. Success proves that \
the agent got the answer, not that what it did then worked. Repeating the same answer is safe: it \
is given once."""

OUTPUT = """\
Page through all that one turn left: its whole answer, its tool calls with inputs and outputs, its \
structured output, or its diff. Use it when a result was `truncated`, or to look at what an agent \
did; where a turn stands, opencode-status tells. Changes nothing; works for any turn of a session \
that has not been ended, also after restarts.

content is exactly the page's text: pages put together are the whole, without gap or overlap. \
While hasMore, call again with offset nextOffset and snapshot-id snapshotId, which pins the \
content. SNAPSHOT_EXPIRED: it has changed; begin again without snapshot-id. `partial`: not all \
there will be or would have been (the turn runs, was cut short, or a part was too large to read).

OUTPUT_NOT_READY: wait with opencode-status, then repeat. OUTPUT_UNAVAILABLE: the turn left no \
such thing, and repeating does not help (a diff needs a git folder). TURN_NOT_FOUND names the \
turns there are."""

END = """\
End a session when you are done with it: stop its running turn, reject what waits, {action} it in \
OpenCode with its sub-sessions, confirm that by reading, and stop tracking it. It cannot be \
undone, and the session takes no further prompt from the moment this is accepted. Files that the \
agent changed stay as they are. Use opencode-cancel to stop only the turn, opencode-status only to \
look.

`ended`: confirmed. `not_found`: no such session of yours is tracked (never, or ended before); \
nothing was done. `ending` with CLEANUP_UNCONFIRMED: accepted, but OpenCode has not confirmed it \
within {cleanup_s} s; this server goes on trying: call this again with the same id to see it \
through. Repeating is safe, also at once. action defaults to `{action}`; \
`delete` may replace a pending `archive`, not the other way round (END_CONFLICT)."""

INFO = """\
Tell what this server and its OpenCode offer, before you start a session: models, agents, folders, \
defaults and ceilings. Changes nothing; safe to repeat. For sessions use opencode-status.

`server` (the default): versions, mode, the defaults in force and the most you may ask for, by \
setting. It never starts OpenCode and waits 2 s for it at most: availability is `ok`, \
`opencode_unreachable`, or left out where a managed one is not up yet. `models`: what `model` may \
be (id), with context and output tokens, variants, and whether tools can be called (an agent needs \
that). `agents`: what `agent` may be. Both depend on cwd and are read from OpenCode, which starts \
if need be; OPENCODE_UNAVAILABLE: it cannot be asked, try again later. `roots`: the folders in and \
below which cwd may lie; directory is the default one. Lists come in pages: repeat the call with \
nextOffset and snapshotId while hasMore. SNAPSHOT_EXPIRED: the list has changed, begin again."""
