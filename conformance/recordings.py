"""Conversations recorded from the reference, replayed against any server.

    python -m conformance.recordings --url http://127.0.0.1:6440 [--insecure] [--ignore FIELD] [--only TEXT] [FILE…]

A recording is a JSON object a line: `id`, `title` and `steps`; a step is a request with what the reference answered
under `expect` (code, content_type, headers, body, warnings). A step with `watch` is a stream: `during` are the requests
sent while it is open, `events` what it delivered. `poll_until` repeats a request until a condition holds.

A case with `stubs` is about webhooks (see `stub`): a step may change the stubs, and lists under `stub_calls` what the
server asked them meanwhile, without the calls to paths in `calls_ignore`, and as a set if they are `unordered_calls`.

`deviations.json` lists where the server differs from the reference on purpose, and why: steps whose answers are not
compared, and fields that are not compared in the rest of the case.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformance.client import DEFINITIONS, Client
from conformance.comparison import Comparison
from conformance.stub import Stub

DATA = Path(__file__).parent / "recordings"
DEVIATIONS = Path(__file__).parent / "deviations.json"
PATIENCE = 10.0  # seconds for a condition to become true


class Conversation:
    """One recorded case against one server."""

    def __init__(
        self, client: Client, case: dict[str, Any], ignored: Iterable[str] = (), stub: Stub | None = None
    ) -> None:
        """`ignored`: names of fields that are not compared. `stub`: the webhook, for cases that need one."""
        self.client = client
        self.case = case
        self.stub = stub
        deviation = deviations().get(case["id"], {})
        self.deviating = deviation.get("steps", [])
        self.comparison = Comparison(case, frozenset([*ignored, *deviation.get("ignore", [])]))

    def run(self) -> list[str]:
        """Replay the case; what differed. The definitions that it created are deleted again."""
        for namespace in sorted(set(re.findall(r"/namespaces/([a-z][a-z0-9-]*)/", json.dumps(self.case["steps"])))):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self.client.send("POST", "/api/v1/namespaces", body)
        if self.stub is not None:
            self.stub.reset(self.case.get("stubs"))
        try:
            for n, step in enumerate(self.case["steps"]):
                found = self._step(step)
                if found and n not in self.deviating:
                    what = step.get("watch") or f"{step.get('method')} {step.get('path')}"
                    return [f"step {n} {what}", *found]
            return []
        finally:
            self._clean_up()

    def _step(self, step: dict[str, Any]) -> list[str]:
        if self.stub is not None:
            self.stub.take()
        found = self._watch(step) if "watch" in step else self._request(step)
        if found or self.stub is None or "stub_calls" not in step:
            return found
        recorded = self.comparison.translate(step["stub_calls"])
        actual = [call for call in self.stub.take() if call["path"] not in step.get("calls_ignore", ())]
        if step.get("unordered_calls"):
            recorded, actual = sorted(recorded, key=_call_rank), sorted(actual, key=_call_rank)
        return list(self.comparison.differences(recorded, actual, "stub_calls"))

    def _clean_up(self) -> None:
        if self.stub is not None:
            self.stub.reset()
        for path in sorted(set(_configured(self.case["steps"]))):
            self.client.send("DELETE", path)
        for name in sorted(set(_created(self.case["steps"]))):
            path = f"{DEFINITIONS}/{quote(name)}"
            self.client.send("DELETE", path)
            deadline = time.monotonic() + PATIENCE
            while self.client.send("GET", path).code != 404 and time.monotonic() < deadline:
                time.sleep(0.01)

    def _request(self, step: dict[str, Any]) -> list[str]:
        expected = step["expect"]
        if self.stub is not None:
            self.stub.change(step.get("stubs") or {})
        path, body = self.comparison.translate(step["path"]), self._body(step)
        deadline = time.monotonic() + PATIENCE
        while True:
            code, headers, data = self._exchange(step, path, body)
            actual = _parse(data)
            condition = step.get("poll_until")
            if condition is None or _holds(condition, code, actual) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        self.comparison.learn(expected.get("body"), actual)
        if code != expected["code"]:
            return [f"code: expected {expected['code']}, got {code}: {str(actual)[:300]}"]
        if condition is not None:
            return [] if _holds(condition, code, actual) else [f"never reached {condition}"]
        return list(self._differences(expected, headers, actual))

    def _exchange(
        self, step: dict[str, Any], path: str, body: bytes | None
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.stub is None:
            return self.client.exchange(step.get("method", "GET"), path, body, _headers(step))
        show, hide = self.stub.show, self.stub.hide
        if body is not None:
            body = show(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        code, headers, data = self.client.exchange(step.get("method", "GET"), path, body, _headers(step))
        hidden = hide(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return code, [(name, hide(value)) for name, value in headers], hidden

    def _differences(self, expected: dict[str, Any], headers: list[tuple[str, str]], actual: Any) -> Iterator[str]:
        if "body" in expected:
            yield from self.comparison.differences(expected["body"], actual)
        if expected.get("warnings") is not None:
            warnings = ", ".join(value for name, value in headers if name.lower() == "warning")
            yield from self.comparison.differences(", ".join(expected["warnings"]), warnings, "Warning")
        have = {name.lower(): value for name, value in headers}
        wanted = expected.get("content_type")
        if wanted and wanted.split(";")[0] != have.get("content-type", "").split(";")[0]:
            yield f"Content-Type: expected {wanted}, got {have.get('content-type')}"
        for name, value in (expected.get("headers") or {}).items():
            if have.get(name) != value:
                yield f"{name}: expected {value!r}, got {have.get(name)!r}"

    def _body(self, step: dict[str, Any]) -> bytes | None:
        if "body_hex" in step:
            return bytes.fromhex(step["body_hex"])
        if "body_base64" in step:
            return base64.b64decode(step["body_base64"])
        if step.get("body") is None:
            return None
        body = self.comparison.translate(step["body"])
        return (body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "surrogateescape")

    # -- streams

    def _watch(self, step: dict[str, Any]) -> list[str]:
        """Open the stream, send the requests meanwhile, compare the events."""
        expected: list[Any] = step.get("events") or []
        opened = threading.Event()
        result: list[tuple[int, list[Any]]] = []

        def read() -> None:
            path = self.comparison.translate(step["watch"])
            result.append(self._events(path, step, len(expected), opened))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        opened.wait(5)
        for n, inner in enumerate(step.get("during", [])):
            found = self._request(inner)
            if found:
                return [f"during[{n}] {inner['method']} {inner['path']}", *found]
        reader.join()
        code, actual = result[0] if result else (0, [])
        if code != step.get("code", 200):
            return [f"code: expected {step.get('code')}, got {code}: {str(actual)[:300]}"]
        if code != 200:
            expected = [step.get("body")]
        self.comparison.learn(expected, actual)
        if step.get("unordered"):
            expected, actual = sorted(expected, key=_event_rank), sorted(actual, key=_event_rank)
        return list(self.comparison.differences(expected, actual, "events"))

    def _events(self, path: str, step: dict[str, Any], wanted: int, opened: threading.Event) -> tuple[int, list[Any]]:
        """What a stream delivers until there are as many events as wanted, or its time is over."""
        seconds = step.get("seconds", 5)
        connection = self.client.connect(seconds)
        events: list[Any] = []
        rest = b""
        try:
            connection.request("GET", path, headers=_headers(step))
            answer = connection.getresponse()
            opened.set()
            if answer.status != 200:
                return answer.status, [json.loads(answer.read() or b"null")]
            deadline = time.monotonic() + seconds
            while len(events) < wanted and time.monotonic() < deadline:
                chunk = answer.read1(65536)
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                events += [json.loads(self._hidden(line)) for line in lines if line.strip()]
        except (TimeoutError, OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return 200, events

    def _hidden(self, line: bytes) -> bytes:
        return line if self.stub is None else self.stub.hide(line.decode()).encode()


def _headers(step: dict[str, Any]) -> dict[str, str]:
    headers = {"Accept": step.get("accept") or "application/json"}
    if step.get("content_type"):
        headers["Content-Type"] = step["content_type"]
    return headers | (step.get("headers") or {})


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")


def _created(steps: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The definitions that a case creates: they go when it ends, so that cases may share API groups."""
    for step in steps:
        body = step.get("body")
        metadata = body.get("metadata") if isinstance(body, dict) else None
        if (
            step.get("path", "").startswith(DEFINITIONS)
            and isinstance(metadata, dict)
            and isinstance(metadata.get("name"), str)
        ):
            yield metadata["name"]


_CONFIGURATIONS = re.compile("/apis/admissionregistration|/api/v1/namespaces/[^/]+/configmaps")


def _configured(steps: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The paths of the webhook configurations, policies, bindings and parameters that a case creates."""
    for step in steps:
        body = step.get("body")
        if step.get("method") == "POST" and isinstance(body, dict) and _CONFIGURATIONS.match(step.get("path", "")):
            yield f"{step['path'].partition('?')[0]}/{quote(body['metadata']['name'])}"


def _call_rank(call: dict[str, Any]) -> tuple[str, str, str]:
    request = call["review"].get("request", {})
    return call["path"], request.get("operation", ""), request.get("name", "")


def _event_rank(event: Any) -> tuple[str, str]:
    return event.get("type", ""), event.get("object", {}).get("metadata", {}).get("name", "")


def _holds(condition: str, code: int, body: Any) -> bool:
    status = body.get("status") if isinstance(body, dict) else None
    conditions = status.get("conditions") or [] if isinstance(status, dict) else []

    def has(kind: str, value: str | None) -> bool:
        return any(one.get("type") == kind and value in (None, one.get("status")) for one in conditions)

    name, _, argument = condition.partition("=")
    if name == "established":
        return code == 200 and has("Established", "True")
    if name == "code":
        return code == int(argument)
    if name == "cond":
        return code == 200 and has(*argument.split(":"))
    if name == "nocond":
        return code == 200 and not has(argument, None)
    raise ValueError(f"unknown poll_until {condition!r}")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def needs_stub(case: dict[str, Any]) -> bool:
    """Whether a case is about webhooks."""
    return bool(case.get("stubs")) or "{{" in json.dumps(case["steps"])


@cache
def deviations() -> dict[str, dict[str, Any]]:
    """By case: where the server differs on purpose."""
    return {one["case"]: one for one in json.loads(DEVIATIONS.read_text())}


def main() -> int:
    parser = argparse.ArgumentParser(description="Replay recorded conversations.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify certificates")
    parser.add_argument("--ignore", action="append", default=[], metavar="FIELD", help="a field name not to compare")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose id contains this")
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    failed = total = 0
    with Client(given.url, insecure=given.insecure) as client, contextlib.ExitStack() as closing:
        stub: Stub | None = None
        for file in given.files or sorted(DATA.glob("*.jsonl")):
            cases = [case for case in read(file) if given.only in case["id"]]
            passed = 0
            if stub is None and any(map(needs_stub, cases)):
                stub = closing.enter_context(Stub())
            for case in cases:
                found = Conversation(client, case, given.ignore, stub if needs_stub(case) else None).run()
                passed += not found
                if found:
                    print(f"FAIL {case['id']}: {case.get('title', '')}\n     " + "\n     ".join(found[:12]))
            print(f"{file.name}: {passed}/{len(cases)}")
            failed, total = failed + len(cases) - passed, total + len(cases)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
