"""The server we drive: its typed client, its event stream, its process. Knows no "ours"."""
