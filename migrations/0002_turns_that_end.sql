-- What it takes to bring a turn to its end whoever began it, and to say what a session may do.
-- Moments, flags and enum words are as in 0001.

-- SQLite cannot widen a CHECK in place, so the table is made anew.
CREATE TABLE turns_anew (
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- 1, 2, 3, …
    number      INTEGER NOT NULL CHECK (number >= 1),
    -- the id that we gave to the prompt's user message
    message_id  TEXT NOT NULL,
    -- the last message before it; NULL: there was none
    boundary    TEXT,
    -- what is known of the prompt on its way to OpenCode
    submission  TEXT NOT NULL CHECK (submission IN ('recorded', 'refused')),
    created_at  TEXT NOT NULL,
    -- when it is to be stopped if it still runs
    deadline_at TEXT NOT NULL,
    -- why we asked it to stop; the first reason stays
    stop_reason TEXT CHECK (stop_reason IN ('cancel', 'timeout', 'end', 'loop')),
    -- the process of ours that observes it (its presence lock's name); NULL: none is known
    holder      TEXT,
    -- when it was seen to be over. NULL: somebody has to observe it, stop it at its deadline, and
    -- carry out what stop_reason asks. What it came to is not kept: OpenCode's messages tell
    finished_at TEXT,
    PRIMARY KEY (session_id, number),
    UNIQUE (session_id, message_id)
);
INSERT INTO turns_anew
    (session_id, number, message_id, boundary, submission, created_at, deadline_at, stop_reason)
    SELECT session_id, number, message_id, boundary, submission, created_at, deadline_at, stop_reason
    FROM turns;
DROP TABLE turns;
ALTER TABLE turns_anew RENAME TO turns;
-- The turns that somebody has to bring to their end: few, whatever the table holds.
CREATE INDEX turns_open ON turns (deadline_at) WHERE finished_at IS NULL;

-- What a session may do, and who answers when it asks; fixed at its start. Those of before were
-- started without rules.
ALTER TABLE sessions ADD COLUMN sandbox TEXT NOT NULL DEFAULT 'danger-full-access'
    CHECK (sandbox IN ('read-only', 'workspace-write', 'danger-full-access'));
ALTER TABLE sessions ADD COLUMN approval_policy TEXT NOT NULL DEFAULT 'never'
    CHECK (approval_policy IN ('never', 'on-request', 'caller'));

-- When a pending end is tried again; NULL: now.
ALTER TABLE sessions ADD COLUMN end_next_at TEXT;
CREATE INDEX sessions_ending ON sessions (end_since) WHERE phase = 'ending';

-- Keys that all processes of ours on this database share, each made once.
CREATE TABLE keys (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
);
