"""A client that costs little, so that one process can load a server: one connection, one request at a time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

JSON = "application/json"


class Connection:
    """Connects with the first request, and again after a request that failed or was cancelled."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, value: Any = None, content_type: str = JSON, **headers: str
    ) -> tuple[int, Any]:
        """The status and the decoded answer. Raises ConnectionRefusedError if nothing was sent, other OSErrors and
        asyncio.IncompleteReadError if the answer does not arrive."""
        reader, writer = await self.opened()
        body = b"" if value is None else json.dumps(value).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
        try:
            writer.write(f"{head}Content-Type: {content_type}\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = dict(line.lower().split(": ", 1) for line in answer.split("\r\n")[1:-2])
            if fields.get("connection") == "close":
                self.close()
            return int(answer.split(" ", 2)[1]), json.loads(await reader.readexactly(int(fields["content-length"])))
        except BaseException:
            self.close()
            raise

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        return self._streams

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
