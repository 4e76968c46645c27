-- What this program remembers. The truth about intent: what we want of each session, written down
-- before the first request that acts on it. What a session is doing is never stored; OpenCode knows.
--
-- Moments (…_at, …_since) are UTC text of one fixed width, 2026-01-31T23:59:59.123456+00:00, so that
-- they sort as text. Flags are 0 or 1. The words of an enum are those of opencode_mcp/records.py and
-- lifecycle.py.
--
-- opencode_mcp/store/migrate.py runs this file in one transaction and sets user_version to its number.
-- Once released it is never edited again.

-- 'ocmp': how a database of ours is told from another program's.
PRAGMA application_id = 0x6f636d70;

-- One OpenCode. Execution lives in it and nowhere else (contract §1).
CREATE TABLE instances (
    id           TEXT PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('managed', 'attach')),
    -- attach: its normalised URL. managed: NULL, the URL lives in the instance's own 0600 file
    url          TEXT CHECK ((url IS NOT NULL) = (kind = 'attach')),
    -- managed: hash of binary, arguments and child environment
    settings_key TEXT,
    -- managed: the UUID in OpenCode's data folder; NULL until known
    data_id      TEXT,
    -- managed: its supervisor's lock was taken, so it is gone. Never returns to 0
    dead         INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1))
);
-- Whoever answers at a URL is the instance: one row each.
CREATE UNIQUE INDEX instances_by_url ON instances (url) WHERE url IS NOT NULL;

-- A session about to be created, so that a lost answer to the create can be settled.
CREATE TABLE starts (
    -- goes into the session's OpenCode metadata, so that it can be found there
    token       TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    instance_id TEXT NOT NULL REFERENCES instances (id),
    directory   TEXT NOT NULL,
    created_at  TEXT NOT NULL
);
CREATE INDEX starts_by_instance ON starts (instance_id);
CREATE INDEX starts_by_owner ON starts (owner);

-- A tracked session. Confirmed ends leave this table; a tombstone remembers them.
CREATE TABLE sessions (
    -- OpenCode's id, ses_…
    id          TEXT PRIMARY KEY,
    -- the principal that started it; to others it does not exist
    owner       TEXT NOT NULL,
    -- the OpenCode that runs it
    instance_id TEXT NOT NULL REFERENCES instances (id),
    -- the folder that OpenCode works in
    directory   TEXT NOT NULL,
    phase       TEXT NOT NULL CHECK (phase IN ('active', 'quarantined', 'ending')),
    -- grows with every write to this row; writers compare it with what they read
    version     INTEGER NOT NULL,
    created_at  TEXT NOT NULL,
    -- when a caller's doing last changed it: a turn, a phase, an end. Not our own retries
    updated_at  TEXT NOT NULL,
    title       TEXT,
    -- stored options; a turn that names another replaces them
    model       TEXT,
    agent       TEXT,
    variant     TEXT,
    base_instructions      TEXT,
    developer_instructions TEXT,
    -- how many turns were begun; the number of the newest
    turn_count  INTEGER NOT NULL CHECK (turn_count >= 0),
    -- an accepted end, not confirmed yet: what it does, since when, how often the procedure was
    -- begun, why the last try failed, and whether a delete of ours was sent (from then on a 404
    -- counts as deleted)
    end_action      TEXT CHECK (end_action IN ('delete', 'archive')),
    end_since       TEXT,
    end_attempt     INTEGER NOT NULL DEFAULT 0,
    end_last_error  TEXT,
    end_delete_sent INTEGER NOT NULL DEFAULT 0 CHECK (end_delete_sent IN (0, 1)),
    CHECK ((phase = 'ending') = (end_action IS NOT NULL)),
    CHECK ((phase = 'ending') = (end_since IS NOT NULL))
);
-- Pages of one owner's sessions, of everybody's, and of one instance's, newest first.
CREATE INDEX sessions_by_owner ON sessions (owner, updated_at DESC, id);
CREATE INDEX sessions_by_update ON sessions (updated_at DESC, id);
CREATE INDEX sessions_by_instance ON sessions (instance_id, updated_at DESC, id);

-- One prompt and all that follows it until idle; recorded before the prompt is sent.
CREATE TABLE turns (
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
    stop_reason TEXT CHECK (stop_reason IN ('cancel', 'timeout', 'end')),
    PRIMARY KEY (session_id, number),
    UNIQUE (session_id, message_id)
);

-- Further names of a session. One namespace with the session ids: no alias is the id of a session
-- that lives or is remembered. No foreign key: an alias outlives its session and leads to its
-- tombstone, and goes with that.
CREATE TABLE aliases (
    alias      TEXT PRIMARY KEY,
    session_id TEXT NOT NULL
);
CREATE INDEX aliases_by_session ON aliases (session_id);

-- The right to act on one session's end.
CREATE TABLE leases (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    -- the process that holds it; NULL: given back
    holder     TEXT,
    -- grows each time it is taken, and guards each write under it. So the row stays when it is freed
    fence      INTEGER NOT NULL
);

-- How a session ended; nothing of its content.
CREATE TABLE tombstones (
    session_id  TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    action      TEXT NOT NULL CHECK (action IN ('delete', 'archive')),
    ended_at    TEXT NOT NULL,
    -- the answer that the end gave, so that a late second end gets the same
    answer_json TEXT NOT NULL
);
CREATE INDEX tombstones_by_end ON tombstones (ended_at);
