-- A process that hangs holds a lease without being dead: others must be able to tell.

-- Grows while the holder works. Who has seen it unchanged for the lease's length on its own
-- monotonic clock may take the lease: no moment is stored, so no clock has to agree with another.
ALTER TABLE leases ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0;
