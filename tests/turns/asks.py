"""What an agent asks its user, in the model's script."""

from __future__ import annotations

QUESTION = (
    'TOOL:{"name":"question","args":{"questions":[{"question":"Which?","header":"Q",'
    '"options":[{"label":"a","description":"a"}]}]}}'
)
