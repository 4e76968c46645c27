"""opencode-mcp: delegates coding tasks to OpenCode, tracks the sessions, and really ends them."""

__version__ = "0.1.0"
