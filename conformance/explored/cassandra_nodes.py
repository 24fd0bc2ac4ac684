"""The HTTP server in each node of Cassandra, as far as operators ask it: instaclustr's sidecar, and the management API of cass-operator.

    python conformance/explored/cassandra_nodes.py PORT

It listens at all addresses of loopback, which are those of the simulated pods, so it knows which node is asked. To the sidecar's
questions a node is NORMAL, and DECOMMISSIONED when that has been asked of it. To those of the management API a node is a member of
the cluster when it has been asked to start, until it is asked to leave. It keeps that for as long as it runs: a run of an
exploration has its own.
"""

from __future__ import annotations

import json
import sys
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

_decommissioned: Final[set[str]] = set()
_started: Final[dict[str, None]] = {}


class Node(BaseHTTPRequestHandler):
    @property
    def _address(self) -> str:
        return str(self.connection.getsockname()[0])

    def do_GET(self) -> None:
        if self.path == "/api/v0/metadata/endpoints":
            self._answer(HTTPStatus.OK, {"entity": [_member(address) for address in _started]})
            return
        state = "DECOMMISSIONED" if self._address in _decommissioned else "NORMAL"
        self._answer(HTTPStatus.OK, {"nodeState": state})

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if b'"decommission"' in asked:
            _decommissioned.add(self._address)
        if self.path.startswith("/api/v0/lifecycle/start"):
            _started[self._address] = None
        if self.path.startswith("/api/v0/ops/node/decommission"):
            _started.pop(self._address, None)
        self._answer(HTTPStatus.CREATED, {}, Location=f"/operations/{uuid.uuid4()}")

    def _answer(self, status: HTTPStatus, value: dict[str, object], **headers: str) -> None:
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


def _member(address: str) -> dict[str, str]:
    host = str(uuid.uuid5(uuid.NAMESPACE_URL, address))
    return {"HOST_ID": host, "RPC_ADDRESS": address, "IS_ALIVE": "true", "STATUS": "NORMAL", "LOAD": "1"}


if __name__ == "__main__":
    Nodes(("0.0.0.0", int(sys.argv[1])), Node).serve_forever()
