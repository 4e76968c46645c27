"""The parts put together: what belongs to the process itself."""
