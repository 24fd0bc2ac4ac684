"""`noxu open`: a recording in the console, or two side by side, as one static file, or at an address of this machine (`noxu.console.static_file`)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from noxu.api.codec import MAX_BODY
from noxu.commands import calls
from noxu.console import static_file
from noxu.console.recorded_answers import two_runs
from noxu.exploration import opened_files
from noxu.values import Object

LOOPBACK: Final = "127.0.0.1"
NAMES: Final = (LOOPBACK, "localhost")
HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
)
JSON: Final = (("Content-Type", "application/json"), *HEADERS[1:])


def run(options: argparse.Namespace) -> int:
    """Exit status 0, also after Ctrl-C; 1: the recording cannot be read, or the file not written."""
    try:
        found = _answers(options.file, options.other)
        if options.html is not None:
            options.html.write_bytes(static_file.page(found))
            return 0
        found["/_noxu/console/session"]["mayOpen"] = True
        serve(static_file.page(found, asks=True), options.port)
    except OSError as error:
        calls.complain(f"{error.filename or options.html or LOOPBACK}: {error.strerror or error}")
        return 1
    except ValueError as error:
        calls.complain(str(error))
        return 1
    return 0


def _answers(file: Path, other: Path | None) -> Object:
    """Raises OSError, ValueError."""
    if other is None:
        return opened_files.page_answers(file.read_bytes(), str(file))
    one, two = (opened_files.read(each.read_bytes(), str(each)) for each in (file, other))
    return two_runs(one, two, (file.name, other.name))


def serve(page: bytes, port: int) -> None:
    """Show the page until Ctrl-C. Raises OSError."""
    with ThreadingHTTPServer((LOOPBACK, port), handler_of(page)) as server:
        print(f"The recording is at http://{LOOPBACK}:{server.server_port}/ until Ctrl-C.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def handler_of(page: bytes) -> type[BaseHTTPRequestHandler]:
    class PageHandler(BaseHTTPRequestHandler):
        """Answers with the page, and with what a page asks about a further file, to who has asked for this machine by its name.

        A page of others can neither read nor ask: a body of JSON needs a leave that it does not get.
        """

        def do_GET(self) -> None:
            if self._is_own() and self.path == "/":
                self._send(200, page, HEADERS)
            else:
                self._send(404, b"Only / of 127.0.0.1 is here.\n")

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            body = self.rfile.read(int(length)) if length.isdecimal() and int(length) <= MAX_BODY else b""
            is_json = self.headers.get("Content-Type") == "application/json"
            if self._is_own() and is_json and self.path == opened_files.PATH:
                self._send(*answered(body), JSON)
            else:
                self._send(404, b"Only a recording is read here.\n")

        def _is_own(self) -> bool:
            return self.headers.get("Host", "").rpartition(":")[0] in NAMES

        def _send(self, code: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
            self.send_response(code)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name above
            """Say nothing."""

    return PageHandler


def answered(body: bytes) -> tuple[int, bytes]:
    """(200, what a page asks about the file that it has sent), or (422, why not)."""
    try:
        sent = json.loads(body)
        found = opened_files.opened(str(sent["name"]), str(sent["content"]))
    except (ValueError, KeyError, TypeError) as error:
        message = (
            f"{error}" if isinstance(error, ValueError) and body else f"a recording has at most {MAX_BODY} bytes here"
        )
        return 422, json.dumps({"message": message}).encode()
    found["/_noxu/console/session"]["mayOpen"] = True
    return 200, json.dumps(found).encode()
