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
Start a new OpenCode session in a folder and run its first turn there: a coding agent that reads \
and edits files and runs commands. Use opencode-reply to go on with a session that exists.

Returns the agent's answer and a sessionId. The call watches the turn for wait-seconds; if it is \
not over by then, the answer is `running` (not an error) and the turn goes on: call \
opencode-status. `waiting_for_approval`: see hint; with approval-policy caller answer with \
opencode-approve. `completed`: read content. `failed` and `timeout` are errors that say why. Do \
not send the prompt again while its fate is open: each call starts another session, unless it \
repeats the request-id of an earlier one. Then it joins that one's turn, also after a lost answer \
or a restart of this server, and sends nothing (request.replayed). \
{cancelling} {on_cancel}. The agent changes files for real; nothing is undone when the session \
ends. sandbox guides it and is no jail: a shell command can still write anywhere. End each \
session with opencode-end when you are done."""

REPLY = """\
Send another prompt to a session that exists and run its next turn; the agent remembers earlier \
turns. Use opencode to start a new session.

One turn at a time: while one runs this is refused with SESSION_BUSY and nothing is sent; see \
opencode-status and reply when it is over. model, agent, variant and developer-instructions \
replace the session's stored ones from this turn on. Results are those of opencode. A prompt is \
never sent twice: if its fate is unknown the error is SUBMISSION_UNCONFIRMED, and opencode-status \
looks again. The same call with the same request-id joins the first one's turn. {cancelling} \
{on_cancel}."""

STATUS = """\
Look at one session (give one id), watch several (give ids), or list your tracked sessions (give \
none), the newest used first. Changes nothing and starts no turn; safe to repeat. Use \
opencode-reply to go on, opencode-cancel to stop a turn and opencode-end to finish.

With an id: where its newest turn stands, read from OpenCode now, with the answer once there is \
one: `running`, `waiting_for_approval`, `stopping`, `completed`, `failed`, `cancelled`, `timeout`, \
`idle`, `ending` (an end was accepted, not confirmed: call opencode-end again), `quarantined` (a \
prompt's fate is unknown), `unknown` (OpenCode cannot be asked now). With wait-seconds the call \
returns as soon as there is news (over, or waiting for an answer), which is cheaper than asking \
again and again; cancelling it does not touch the turn. If the session is on-request, a person is \
asked meanwhile. With ids: `ready` when what wait-for asks for is there (see readyIds), else \
`waiting`; results share the room, so ask for one id to see more. A list is a page of offset and \
limit; nextOffset leads to the next one."""

CANCEL = """\
Ask the running turn of a session to stop; the session stays and can go on with opencode-reply. \
Use opencode-end instead to stop the turn and end the session, opencode-status only to look.

Sends an abort to OpenCode and watches for wait-ms. A request is not an outcome: `accepted` means \
that the stop was sent, `done` that the turn is proven over. `stopping`: not confirmed yet; it is \
tried until it is: call opencode-status with wait-seconds. `cancelled`: confirmed; what the agent \
did so far stays, nothing is undone, and a process that one of its commands started may live on (a \
warning says so). Another status is the turn's own end, which came first; `alreadyDone`: it was \
over before this call and nothing was sent. With turnId only that turn is stopped, never a later \
one. Waiting permissions and questions of the turn are rejected. Repeating is safe."""

APPROVE = """\
Answer one thing that a session's agent waits for: a permission to use a tool, or a question. Only \
for sessions started with approval-policy caller whose status is `waiting_for_approval`; the ids \
are in pendingApprovals (kind says which it is). Use opencode-reply to send a prompt, opencode-end \
to stop for good.

`allow` grants a permission this once, never for later, or answers a question (answers required). \
`reject` with feedback tells the agent what to do instead and its turn goes on; without feedback, \
and always for a question, the turn ends. A rejection takes the session's other pending \
permissions along. What nobody answers within {ask_s} s is rejected.

Returns where the turn stands right after: mostly `running`, since it went on: call \
opencode-status. `waiting_for_approval`: answer the next one. APPROVAL_NOT_FOUND: it does not wait \
any more (answered, too late, or the turn was stopped) and nothing was granted. An answer proves \
that the agent got leave, not that what it did then worked. Repeating the same answer is safe: it \
is given once."""

OUTPUT = """\
Page through all that one turn left: its whole answer, its tool calls with inputs and outputs, its \
structured output, or its diff. Use it when a result was `truncated`, or to look at what an agent \
did; where a turn stands, opencode-status tells. Changes nothing; works for any turn of a session \
that has not been ended, also after restarts.

content is exactly the page's text: pages put together are the whole, without gap or overlap. \
offset, limit and total count Unicode code points; for diff-view stat, files. A page may be \
shorter than limit: while hasMore, call again with offset nextOffset and snapshot-id snapshotId, \
which pins the content. SNAPSHOT_EXPIRED: it has changed; begin again without snapshot-id. \
`partial`: not all there will be or would have been (the turn runs, was cut short, or a part was \
too large to read). toolCalls and diff list what begins on the page.

OUTPUT_NOT_READY: wait with opencode-status, then repeat. OUTPUT_UNAVAILABLE: the turn left no \
such thing, and repeating does not help (a diff needs a git folder). TURN_NOT_FOUND names the \
turns there are."""

END = """\
End a session: stop its running turn, reject what waits, {action} it in OpenCode with its \
sub-sessions, confirm that by reading, and stop tracking it. It cannot be undone, and the \
session takes no further prompt from the moment this is accepted. Files that the agent changed \
stay as they are. Use opencode-status only to look.

`ended`: confirmed. `not_found`: no such session of yours is tracked (never, or ended before); \
nothing was done. `ending` with CLEANUP_UNCONFIRMED: accepted, but OpenCode has not confirmed it \
within {cleanup_s} s; the session stays tracked and ending: call this again with the same id. \
Repeating is safe, and two calls at once are one end. action defaults to `{action}`; `delete` may \
replace a pending `archive`, not the other way round (END_CONFLICT)."""

INFO = """\
Tell what this server and its OpenCode offer, before you start a session: models, agents, folders, \
defaults and ceilings. Changes nothing and starts no session; safe to repeat. It knows nothing of \
sessions: use opencode-status for those.

`server` (the default): versions, mode, the defaults in force and the most you may ask for, by \
setting. It never starts OpenCode and waits 2 s for it at most: availability is `ok`, \
`opencode_unreachable`, or left out where a managed one is not up yet. `models`: what `model` may \
be (id), with context and output tokens, variants, and whether tools can be called (an agent needs \
that). `agents`: what `agent` may be. Both depend on cwd and are read from OpenCode, which starts \
if need be; OPENCODE_UNAVAILABLE: it cannot be asked, try again later. `roots`: the folders in and \
below which cwd may lie; directory is the default one. Lists come in pages: repeat the call with \
nextOffset and snapshotId while hasMore. SNAPSHOT_EXPIRED: the list has changed, begin again."""
