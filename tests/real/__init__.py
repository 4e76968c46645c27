"""The suite on the real OpenCode, with a scripted model."""
