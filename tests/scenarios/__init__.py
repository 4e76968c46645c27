"""Scenarios that the twin and the real OpenCode must play alike."""
