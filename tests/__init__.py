"""The tests of opencode-mcp."""
