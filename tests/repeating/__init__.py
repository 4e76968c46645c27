"""Calls that are sent again with their request-id: they join the first one."""
