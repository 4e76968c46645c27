"""What MCP callers see: arguments, results, tools."""
