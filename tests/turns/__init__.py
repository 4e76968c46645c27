"""Our server on the twin: every way in which a turn can go wrong, in milliseconds."""
