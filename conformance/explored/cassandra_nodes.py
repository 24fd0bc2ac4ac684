"""The sidecar of each node of Cassandra, as far as instaclustr's operator asks it: for its state, and to decommission it.

    python conformance/explored/cassandra_nodes.py PORT

It listens at all addresses of loopback, which are those of the simulated pods, so it knows which node is asked. A node is NORMAL,
and DECOMMISSIONED when that has been asked of it. It keeps that for as long as it runs: a run of an exploration has its own.
"""

from __future__ import annotations

import json
import sys
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

_decommissioned: Final[set[str]] = set()


class Node(BaseHTTPRequestHandler):
    @property
    def _address(self) -> str:
        return str(self.connection.getsockname()[0])

    def do_GET(self) -> None:
        state = "DECOMMISSIONED" if self._address in _decommissioned else "NORMAL"
        self._answer(HTTPStatus.OK, {"nodeState": state})

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if b'"decommission"' in asked:
            _decommissioned.add(self._address)
        self._answer(HTTPStatus.CREATED, {}, Location=f"/operations/{uuid.uuid4()}")

    def _answer(self, status: HTTPStatus, value: dict[str, str], **headers: str) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)


class Nodes(ThreadingHTTPServer):
    def verify_request(self, _request: object, client_address: tuple[str, int]) -> bool:
        """Only programs of this machine are answered."""
        return client_address[0].startswith("127.")


if __name__ == "__main__":
    Nodes(("0.0.0.0", int(sys.argv[1])), Node).serve_forever()
