"""Whether a managed instance is where its record says, as seen from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.clock import Clock
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode_errors import OpencodeError, OpencodeTimeoutError

if TYPE_CHECKING:
    from opencode_mcp.opencode.managed import LiveInstance

#: health is 0.4 ms on an idle server (facts 11.2); refused connections are tried three times
_LIMIT_S = 3.0


async def answers_here(instance: LiveInstance) -> bool:
    """Tell whether its address is its own for us, too.

    An instance on a volume that containers share lives at the loopback of one of them: for the
    others nobody listens there, or somebody else does, who does not know the password.
    """
    client = OpencodeClient(
        instance.url,
        username=instance.username,
        password=instance.password,
        request_timeout_s=_LIMIT_S,
        clock=Clock(),
    )
    try:
        async with client:
            await client.health()
    except OpencodeTimeoutError:  # somebody is there who has much to do
        return True
    except OpencodeError:
        return False
    return True
