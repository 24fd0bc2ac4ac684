"""`noxu open`: a recording in the console, or two side by side, as one static file, or at an address of this machine (`noxu.console.static_file`)."""

from __future__ import annotations

import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from noxu.commands import calls
from noxu.console import static_file
from noxu.console.recorded_answers import answers, two_runs
from noxu.exploration.opened import recording_of
from noxu.exploration.recording import from_bytes
from noxu.recordings import lines
from noxu.recordings.lines import ServerRecording
from noxu.values import Object

LOOPBACK: Final = "127.0.0.1"
NAMES: Final = (LOOPBACK, "localhost")
GZIP: Final = b"\x1f\x8b"
HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
)


def run(options: argparse.Namespace) -> int:
    """Exit status 0, also after Ctrl-C; 1: the recording cannot be read, or the file not written."""
    try:
        page = static_file.page(_answers(options.file, options.other))
        if options.html is not None:
            options.html.write_bytes(page)
            return 0
        serve(page, options.port)
    except OSError as error:
        calls.complain(f"{error.filename or options.html or LOOPBACK}: {error.strerror or error}")
        return 1
    except ValueError as error:
        calls.complain(str(error))
        return 1
    return 0


def _answers(file: Path, other: Path | None) -> Object:
    if other is None:
        return answers(opened(file))
    return two_runs(opened(file), opened(other), (file.name, other.name))


def opened(path: Path) -> ServerRecording:
    """The recording of a server, or of a run of an exploration. Raises OSError, ValueError."""
    content = path.read_bytes()
    if not content.startswith(GZIP):
        return lines.parse(content, str(path))
    try:
        plan, run_ = from_bytes(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return recording_of(plan, run_)


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
        """Answers with the page, to who has asked for this machine by its name: a page of others cannot read it."""

        def do_GET(self) -> None:
            is_own = self.headers.get("Host", "").rpartition(":")[0] in NAMES
            found = is_own and self.path == "/"
            body = page if found else b"Only / of 127.0.0.1 is here.\n"
            self.send_response(200 if found else 404)
            for name, value in HEADERS if found else ():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name above
            """Say nothing."""

    return PageHandler
