"""What `codex` and `codex-reply` say of themselves."""

from __future__ import annotations

INSTRUCTIONS = """ \
codex and codex-reply do what opencode and opencode-reply do, for callers of the Codex MCP server: \
they wait until the turn is over. A threadId is the session's id, in every tool."""

CODEX = """\
Start a thread in a folder and run its first turn to its end, as the Codex MCP server did: a \
coding agent (OpenCode) that edits files and runs commands. Use codex-reply to go on with a \
thread, opencode to start one without waiting.

Returns threadId and content, the agent's answer, once the turn is over: up to {turn_s} s, so \
raise your client's limit beyond that. {cancelling} {on_cancel}; the thread stays \
usable. A turn that did not complete is an error that says what to call next. Each call \
starts another thread: while an earlier one's fate is open, find it with opencode-status (without \
an id). The agent changes files for real; sandbox guides it and is no jail. End each \
thread with opencode-end."""

CODEX_REPLY = """\
Send another prompt to a thread and run its next turn to its end; threadId is what codex returned, \
also before a restart. Use codex to start a thread, opencode-reply to go on without waiting.

Waits and answers like codex: up to {turn_s} s; raise your client's limit. While a \
turn runs this is refused (SESSION_BUSY) and nothing is sent: opencode-status waits for it, \
opencode-cancel stops it. {cancelling} {on_cancel}. If a prompt's fate is unknown \
the error says so: look with opencode-status, do not send it again."""
