"""What happens: sessions, turns, ends. Knows no MCP types, no SQL, no HTTP."""
