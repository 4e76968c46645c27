"""nginx before our server, as it comes: nothing is said about buffering, so it buffers."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_CONFIG = """
daemon off;
user root;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_set_header Host $http_host;
            {more}
        }}
    }}
}}
"""


@asynccontextmanager
async def open_nginx(
    folder: Path, *, port: int, behind: int, more: str = ""
) -> AsyncIterator[None]:
    """Run it in the foreground, before what listens at `behind`; it is killed at the end."""
    folder.mkdir(exist_ok=True)
    config = folder / "nginx.conf"
    config.write_text(
        _CONFIG.format(folder=folder, port=port, behind=behind, more=more), encoding="utf-8"
    )
    process = await asyncio.create_subprocess_exec(
        "/usr/sbin/nginx", "-e", str(folder / "nginx.log"), "-c", str(config)
    )

    async def listens() -> bool:
        assert process.returncode is None, (folder / "nginx.log").read_text(encoding="utf-8")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        await eventually(listens, what="nginx listens")
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
