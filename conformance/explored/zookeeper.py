"""A server that says yes to clients of ZooKeeper, for operators that connect to the ensemble which they have deployed.

    python conformance/explored/zookeeper.py [PORT]

Simulated pods do not listen. This keeps nothing: each node that is created was not there before, each one that is asked for is there,
and its version is 0. So it is the same for every run of an exploration. The protocol is that of zookeeper.jute.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from typing import Final

PORT: Final = 2181
CREATE: Final = 1
CLOSE: Final = -11
WITH_STAT: Final = (3, 5)  # exists, setData
STAT: Final = struct.pack(">qqqqiiiqiiq", *[0] * 11)
HANDSHAKE: Final = struct.pack(">iiqi16s", 0, 10_000, 1, 16, b"")  # version, timeout in ms, session, password


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await _frame(reader)
        _send(writer, HANDSHAKE)
        operation = 0
        while operation != CLOSE:
            request = await _frame(reader)
            number, operation = struct.unpack_from(">ii", request)
            _send(writer, struct.pack(">iqi", number, 1, 0) + _answer(operation, request[8:]))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has gone
    finally:
        writer.close()


def _answer(operation: int, body: bytes) -> bytes:
    if operation == CREATE:
        [length] = struct.unpack_from(">i", body)
        return body[: 4 + length]  # the path
    return STAT if operation in WITH_STAT else b""


async def _frame(reader: asyncio.StreamReader) -> bytes:
    [length] = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


def _send(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(struct.pack(">i", len(body)) + body)


async def main(port: int) -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else PORT))
