"""Counts the files that a request walks through: `python -m benchmarks.hops [--calls REQUEST]`.

A server answers warm requests about one custom resource. Calls of the product's own functions are counted in all of its
threads (sys.setprofile), from the request to 50 ms after its response, so with what follows from a write:

    request        calls   changes of file   files   for one call
    POST             306               174      64             20

A change of file is a call of a function of another file than the call before: what a reader of the code has to follow.
Each figure is the smallest of several requests, which is the same in each run. `--calls` prints
the calls of one request.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from noxu import Noxu

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = (str(ROOT / "apiserver" / "noxu"), str(ROOT / "storage" / "noxu_storage"))
SETTLES: Final = 0.05  # seconds, for what a server does after its response
WARM, MEASURED = 20, 5  # requests of each kind

PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


class Call(NamedTuple):
    file: str
    function: str


class Walk(NamedTuple):
    """How many calls a request makes, how often the file changes, and in how many files; `once`: for one call only."""

    calls: int
    changes: int
    files: int
    once: int


class Recorder:
    """Keeps the calls of the product's functions, in threads that start after `threading.setprofile(recorder.profile)`."""

    def __init__(self) -> None:
        self.recorded: dict[str, list[list[Call]]] = {}
        """By the name of a request, the calls of each one."""
        self._calls: list[Call] | None = None

    @contextmanager
    def recording(self, name: str) -> Iterator[None]:
        calls: list[Call] = []
        self._calls = calls
        yield
        time.sleep(SETTLES)
        self._calls = None
        self.recorded.setdefault(name, []).append(calls)

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        calls, code = self._calls, frame.f_code
        if calls is not None and event == "call" and code.co_filename.startswith(PACKAGES):
            calls.append(Call(code.co_filename, code.co_qualname))


def record() -> dict[str, list[list[Call]]]:
    """By the name of a request, the calls of each one that is measured."""
    recorder = Recorder()
    threading.setprofile(recorder.profile)
    try:
        with tempfile.TemporaryDirectory() as directory, Noxu(Path(directory)) as server:
            server.apply(DEFINITION)
            with closing(Client(str(server.url))) as client:
                for number in range(WARM):
                    send_each(client, f"warm-{number}", lambda _: nullcontext())
                for number in range(MEASURED):
                    send_each(client, f"measured-{number}", recorder.recording)
    finally:
        threading.setprofile(None)
    return recorder.recorded


class Client:
    """One connection to a server. A request is one write: in two, the server may read it in one piece or in two."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._socket = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))

    def send(self, method: str, path: str, body: object = None, *, status: int = 200) -> dict[str, Any]:
        """The object that is answered. Raises SystemExit for another status."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        length = f"Content-Length: {len(content)}\r\n" if content else ""
        self._socket.sendall(f"{head}{length}\r\n".encode() + content)
        response = http.client.HTTPResponse(self._socket, method=method)
        response.begin()
        answer = response.read()
        if response.status != status:
            raise SystemExit(f"{method} {path}: {response.status} {answer.decode()}")
        return dict(json.loads(answer))

    def close(self) -> None:
        self._socket.close()


def send_each(client: Client, name: str, recording: Callable[[str], AbstractContextManager[None]]) -> None:
    """Send each kind of request about an object of this name, which does not exist yet."""
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}}
    with recording("POST"):
        created = client.send("POST", PATH, widget, status=201)
    with recording("PUT"):
        client.send("PUT", f"{PATH}/{name}", {**created, "spec": {"size": 2}})
    with recording("refused PUT"):  # for it has no resourceVersion
        client.send("PUT", f"{PATH}/{name}", widget, status=422)
    with recording("GET"):
        client.send("GET", f"{PATH}/{name}")
    with recording("LIST"):
        client.send("GET", PATH)


def walk(calls: Sequence[Call]) -> Walk:
    files = [call.file for call in calls]
    entered = Counter(files)
    changes = sum(before != after for before, after in pairwise(files))
    return Walk(len(files), changes, len(entered), sum(times == 1 for times in entered.values()))


def measure() -> dict[str, Walk]:
    """By the name of a request, the smallest figures of several: those without the work of something else, or of the system."""
    return {name: Walk(*map(min, zip(*map(walk, requests), strict=True))) for name, requests in record().items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hops", description="Count the files of a request.")
    parser.add_argument("--calls", metavar="REQUEST", help="print the calls of a request, such as POST")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    if arguments.calls:
        for call in record()[arguments.calls][-1]:
            print(f"{Path(call.file).relative_to(ROOT)!s:55} {call.function}")
        return
    figures = measure()
    if arguments.json:
        print(json.dumps({name: found._asdict() for name, found in figures.items()}))
        return
    print("request        calls   changes of file   files   for one call")
    for name, found in figures.items():
        print(f"{name:11} {found.calls:8} {found.changes:17} {found.files:7} {found.once:14}")


if __name__ == "__main__":
    main()
