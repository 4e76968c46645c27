-- Calls that can be repeated: what a caller's request-id stands for, so that the same call, sent again
-- after a lost answer or after our restart, joins the first one and no prompt goes out twice.
-- Moments are as in 0001.

CREATE TABLE requests (
    -- whose call it was: the same id of somebody else is another one
    owner       TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    -- SHA-256 of the tool and of the arguments that decide what is sent: enough to tell other ones, and
    -- none of their text is here
    digest      TEXT NOT NULL,
    -- the call that claimed the id, and the newest one that joined it: a name of our making each
    call        TEXT NOT NULL,
    newest_call TEXT NOT NULL,
    -- the process of ours that the first call came to (its presence lock's name). Dead before a turn
    -- was bound: no prompt was sent, and the id may be claimed anew
    holder      TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    -- from then on it means nothing any more
    expires_at  TEXT NOT NULL,
    -- its turn, bound in the transaction that records the turn. No foreign key: the row outlives its
    -- session, so that a repeat is told of the end and does not run again
    session_id  TEXT,
    turn        INTEGER,
    CHECK ((session_id IS NULL) = (turn IS NULL)),
    PRIMARY KEY (owner, request_id)
) WITHOUT ROWID;
CREATE INDEX requests_by_expiry ON requests (expires_at);
