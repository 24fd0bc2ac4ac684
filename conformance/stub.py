"""The webhook of the recorded conversations: it answers as a case specifies and records the calls.

A case's `stubs` map each path to a behaviour, or to a list of behaviours: the n-th one answers the n-th call, the last
one all further calls. A behaviour may have

| | |
|---|---|
| `delay`, `close` | seconds to wait before the answer; close the connection instead of answering |
| `http`, `headers`, `raw`, `pad` | the status, further headers, a text instead of a review, the number of bytes to pad the review with |
| `uid`, `review`, `response` | replaces the request's uid; fields that override those of the review and of its `response` (null: no response) |
| `allowed`, `status`, `warnings`, `auditAnnotations`, `patchType` | parts of an answer to an AdmissionReview |
| `patch`, `patch_raw` | JSON patch operations, or a text instead of them |
| `convert`, `keep_version` | operations for each version (see `_CONVERSIONS`); leave the apiVersion of the objects unchanged |
| `drop`, `repeat`, `reverse`, `result` | changes to the list of converted objects; the `result` of the review |

Placeholders in recorded requests and answers: `{{STUB}}` is its URL, `{{STUB_ADDR}}` its host and port, `{{CA}}` and
`{{OTHER_CA}}` are caBundles that do and do not verify its certificate. The openssl command creates the certificates.
"""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

Json = Any


class Stub:
    """An HTTPS server on loopback, as a context manager; it answers in threads."""

    def __init__(self) -> None:
        self._behaviours: dict[str, Json] = {}
        self._answered: dict[str, int] = {}
        self._calls: list[dict[str, Json]] = []
        self._lock = threading.Lock()
        with tempfile.TemporaryDirectory(prefix="stub-") as directory:
            own, other = (_certificate(Path(directory), name) for name in ("own", "other"))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{directory}/own.pem", f"{directory}/own.key")
        self._server = _Server(self, context)
        address = f"127.0.0.1:{self._server.server_address[1]}"
        self._placeholders = {
            "{{STUB}}": f"https://{address}",
            "{{STUB_ADDR}}": address,
            "{{CA}}": own,
            "{{OTHER_CA}}": other,
        }
        self._thread = threading.Thread(target=self._server.serve_forever, name="stub", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fill_placeholders(self, text: str) -> str:
        """Replace the placeholders of a recorded text by the real address and certificates."""
        for name, value in self._placeholders.items():
            text = text.replace(name, value)
        return text

    def insert_placeholders(self, text: str) -> str:
        """Replace the real address and certificates by placeholders, as in the recordings."""
        for name, value in self._placeholders.items():
            text = text.replace(value, name)
        return text

    def reset(self, behaviours: dict[str, Json] | None = None) -> None:
        """Forget all calls and behaviours, and use these behaviours."""
        with self._lock:
            self._behaviours, self._calls, self._answered = dict(behaviours or {}), [], {}

    def change(self, behaviours: dict[str, Json]) -> None:
        """Replace the behaviours of some paths."""
        with self._lock:
            self._behaviours.update(behaviours)
            for path in behaviours:
                self._answered.pop(path, None)

    def take_calls(self) -> list[dict[str, Json]]:
        """The calls since the last time this was called: `path`, `query` and `review`."""
        with self._lock:
            calls, self._calls = self._calls, []
        return calls

    def record_call(self, method: str, url: str, body: bytes) -> Json:
        """Record a call and return the behaviour that answers it."""
        parts = urlsplit(url)
        call = {
            "path": parts.path,
            "query": parts.query,
            "review": json.loads(self.insert_placeholders(body.decode()) or "{}"),
        }
        if method != "POST":
            call["method"] = method
        with self._lock:
            self._calls.append(call)
            codec = self._behaviours.get(parts.path, {})
            n = self._answered[parts.path] = self._answered.get(parts.path, -1) + 1
        return codec[min(n, len(codec) - 1)] if isinstance(codec, list) else codec


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, stub: Stub, context: ssl.SSLContext) -> None:
        self.stub = stub
        self._context = context
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_: object) -> None:
        """Print nothing: in some cases the client disconnects on purpose."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        codec = self.server.stub.record_call(self.command, self.path, body)
        time.sleep(codec.get("delay", 0))
        if codec.get("close"):
            self.close_connection = True
            self.connection.close()
            return
        if "raw" in codec:
            content = codec["raw"].encode()
        else:
            content = json.dumps(answer(codec, json.loads(body or b"{}"))).encode()
        self.send_response_only(codec.get("http", 200))
        for name, value in {"Content-Type": "application/json", **codec.get("headers", {})}.items():
            self.send_header(name, self.server.stub.fill_placeholders(value))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815 - after a redirect


def _certificate(directory: Path, name: str) -> str:
    """Create a self-signed certificate for 127.0.0.1; return it as a caBundle."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.pem"],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return base64.b64encode((directory / f"{name}.pem").read_bytes()).decode()


# -- answers ----------------------------------------------------------------------------------------------------------


def answer(codec: dict[str, Json], review: dict[str, Json]) -> dict[str, Json]:
    """The review that answers a review, without the fields that are null."""
    request = review.get("request") or {}
    converts = "convert" in codec or "objects" in request
    response = (_conversion if converts else _admission)(codec, request)
    response |= {"uid": codec.get("uid", request.get("uid")), **(codec.get("response") or {})}
    out = {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": _present(response)}
    if codec.get("response", {}) is None:
        del out["response"]
    out |= codec.get("review") or {}
    if codec.get("pad"):
        out["pad"] = "x" * codec["pad"]
    return _present(out)


def _present(value: dict[str, Json]) -> dict[str, Json]:
    return {name: item for name, item in value.items() if item is not None}


def _admission(codec: dict[str, Json], _: dict[str, Json]) -> dict[str, Json]:
    response = {"allowed": codec.get("allowed", True)}
    if "patch" in codec or "patch_raw" in codec:
        text = codec.get("patch_raw", json.dumps(codec.get("patch")))
        response |= {"patch": base64.b64encode(text.encode()).decode(), "patchType": "JSONPatch"}
    optional = ("patchType", "status", "warnings", "auditAnnotations")
    return response | {name: codec[name] for name in optional if name in codec}


def _conversion(codec: dict[str, Json], request: dict[str, Json]) -> dict[str, Json]:
    version = request.get("desiredAPIVersion", "")
    operations = (codec.get("convert") or {}).get(version.rpartition("/")[2], [])
    objects = [_converted(value, version, operations, codec) for value in request.get("objects") or []]
    objects = objects[codec.get("drop", 0) :] * codec.get("repeat", 1)
    if codec.get("reverse"):
        objects.reverse()
    return {"convertedObjects": objects, "result": codec.get("result", {"status": "Success"})}


def _converted(value: Json, version: str, operations: list[list[Json]], codec: dict[str, Json]) -> Json:
    if not codec.get("keep_version"):
        value["apiVersion"] = version
    for name, *arguments in operations:
        _CONVERSIONS[name](value, *arguments)
    return value


def _put(value: Json, path: str, item: Json) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        value = value.setdefault(parent, {})
    value[name] = item


def _take(value: Json, path: str) -> Json:
    *parents, name = path.split(".")
    for parent in parents:
        value = value.get(parent) if isinstance(value, dict) else None
    return value.pop(name, None) if isinstance(value, dict) else None


def _move(value: Json, source: str, target: str) -> None:
    item = _take(value, source)
    if item is not None:
        _put(value, target, item)


def _split(value: Json, source: str, separator: str, targets: list[str]) -> None:
    text = _take(value, source)
    if isinstance(text, str):
        for target, part in zip(targets, text.split(separator), strict=False):
            _put(value, target, part)


def _join(value: Json, sources: list[str], separator: str, target: str) -> None:
    parts = [_take(value, source) for source in sources]
    if any(part is not None for part in parts):
        _put(value, target, separator.join(part or "" for part in parts))


_CONVERSIONS: dict[str, Callable[..., None]] = {
    "set": _put,
    "delete": _take,
    "move": _move,
    "split": _split,
    "join": _join,
}
"""[set, path, value], [delete, path], [move, from, to], [split, from, separator, [to…]], [join, [from…], separator, to]."""
