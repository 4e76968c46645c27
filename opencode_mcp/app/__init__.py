"""Puts the parts together and owns their lifetimes."""
