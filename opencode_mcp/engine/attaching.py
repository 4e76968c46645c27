"""Where an operator pointed us at an OpenCode that runs already."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AttachSettings:
    """The OpenCode an operator pointed us at. `password` None: it asks for none."""

    url: str
    username: str
    password: str | None = field(repr=False)
