"""Settings that are kept in files of their own, so that they are in no environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr

from opencode_mcp.settings_web import parse_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.settings_env import Reading
    from opencode_mcp.settings_web import NamedToken


def password_in(path: Path, reading: Reading) -> SecretStr | None:
    """Return the only line of the file; None: there is a fault, and it is noted."""
    reason = "must be a readable file with one line of UTF-8 text"
    try:
        text = path.read_text(encoding="utf-8")  # also turns \r\n into \n
    except OSError as error:
        reading.fault("server_password_file", f"{reason}: {error.strerror}")
        return None
    except ValueError:
        text = ""
    text = text.removesuffix("\n")
    if not text or "\n" in text:
        reading.fault("server_password_file", reason)
        return None
    return SecretStr(text)


def tokens_in(path: Path) -> tuple[NamedToken, ...]:
    """Return the tokens of a file: one `name:token` a line; blank lines and `#` lines count not.

    Raises ValueError, whose text completes "NAME=path: " and quotes no token.
    """
    reason = "must be a readable file of UTF-8 text with one name:token a line"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        msg = f"{reason}: {error.strerror}"
        raise ValueError(msg) from None
    except ValueError:
        raise ValueError(reason) from None
    lines = [line.strip() for line in text.splitlines()]
    tokens = parse_tokens(["" if line.startswith("#") else line for line in lines], what="line")
    if not tokens:
        msg = f"{reason}: there is none"
        raise ValueError(msg)
    return tokens
