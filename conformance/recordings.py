"""Replays conversations recorded from the reference against any server.

    python -m conformance.recordings --url http://127.0.0.1:6440 [--insecure] [--ignore FIELD] [--only TEXT] [FILE…]

A recording has one JSON object on each line: `id`, `title` and `steps`. A step is a request and the answer of the
reference under `expect` (code, content_type, headers, body, warnings). A step with `watch` is a stream: `during` lists
the requests sent while it is open, `events` the events that it delivered. `poll_until` repeats a request until a
condition holds.

A case with `stubs` is about webhooks (see `stub`). A step may change the stubs, and `stub_calls` lists the calls that
the server made to them during the step, without those to paths in `calls_ignore`; with `unordered_calls` as a set.

`deviations.json` lists where the server differs from the reference on purpose, and why: steps whose answers are not
compared, and fields that are not compared anywhere in the case.
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
from conformance.stub import Stub
from noxu.recordings.comparison import ConversationComparison

DATA = Path(__file__).parent / "recordings"
DEVIATIONS = Path(__file__).parent / "deviations.json"
DEADLINE = 60.0  # seconds: for a condition to hold, and for a stream to deliver its events


class Conversation:
    """One recorded case against one server."""

    def __init__(
        self, client: Client, case: dict[str, Any], ignored: Iterable[str] = (), stub: Stub | None = None
    ) -> None:
        """`ignored` are the names of fields that are not compared; `stub` is required if `needs_stub(case)`."""
        self.client = client
        self.case = case
        self.stub = stub
        deviation = deviations().get(case["id"], {})
        self.deviating = deviation.get("steps", [])
        self.comparison = ConversationComparison(case, frozenset([*ignored, *deviation.get("ignore", [])]))

    def run(self) -> list[str]:
        """Replay the case and delete the definitions that it created; return the first differences."""
        for namespace in sorted(set(re.findall(r"/namespaces/([a-z][a-z0-9-]*)/", json.dumps(self.case["steps"])))):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self.client.send("POST", "/api/v1/namespaces", body)
        if self.stub is not None:
            self.stub.reset(self.case.get("stubs"))
        try:
            for n, step in enumerate(self.case["steps"]):
                found = self._step(step)
                if found and n not in self.deviating:
                    request = step.get("watch") or f"{step.get('method')} {step.get('path')}"
                    return [f"step {n} {request}", *found]
            return []
        finally:
            self._clean_up()

    def _step(self, step: dict[str, Any]) -> list[str]:
        if self.stub is not None:
            self.stub.take_calls()
        found = self._watch(step) if "watch" in step else self._request(step)
        if found or self.stub is None or "stub_calls" not in step:
            return found
        recorded = self.comparison.translate(step["stub_calls"])
        actual = [call for call in self.stub.take_calls() if call["path"] not in step.get("calls_ignore", ())]
        if step.get("unordered_calls"):
            recorded, actual = sorted(recorded, key=_call_sort_key), sorted(actual, key=_call_sort_key)
        return list(self.comparison.differences(recorded, actual, "stub_calls"))

    def _clean_up(self) -> None:
        if self.stub is not None:
            self.stub.reset()
        for path in sorted(set(_created_configurations(self.case["steps"]))):
            self.client.send("DELETE", path)
        for name in sorted(set(_created_definitions(self.case["steps"]))):
            path = f"{DEFINITIONS}/{quote(name)}"
            definition = self.client.send("GET", path)
            if definition.code != 200:
                continue
            self.client.send("DELETE", path)
            self._remove_finalizers(definition.body["spec"])
            deadline = time.monotonic() + DEADLINE
            while self.client.send("GET", path).code != 404 and time.monotonic() < deadline:
                time.sleep(0.01)

    def _remove_finalizers(self, spec: dict[str, Any]) -> None:
        """Let the custom resources of a deleted definition be deleted: no controller removes their finalizers."""
        version = next((version["name"] for version in spec["versions"] if version["served"]), "")
        base, plural = f"/apis/{spec['group']}/{version}", spec["names"]["plural"]
        listed = self.client.send("GET", f"{base}/{plural}")
        for item in listed.body["items"] if listed.code == 200 else ():
            metadata = item["metadata"]
            if metadata.get("finalizers"):
                namespace = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
                path = f"{base}/{namespace}{plural}/{metadata['name']}"
                self.client.send("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")

    def _request(self, step: dict[str, Any]) -> list[str]:
        expected = step["expect"]
        if self.stub is not None:
            self.stub.change(step.get("stubs") or {})
        path, body = self.comparison.translate(step["path"]), self._body(step)
        deadline = time.monotonic() + DEADLINE
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
        fill, blank = self.stub.fill_placeholders, self.stub.insert_placeholders
        if body is not None:
            body = fill(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        code, headers, data = self.client.exchange(step.get("method", "GET"), path, body, _headers(step))
        recorded_form = blank(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return code, [(name, blank(value)) for name, value in headers], recorded_form

    def _differences(self, expected: dict[str, Any], headers: list[tuple[str, str]], actual: Any) -> Iterator[str]:
        if "body" in expected:
            yield from self.comparison.differences(expected["body"], actual)
        if expected.get("warnings") is not None:
            warnings = ", ".join(value for name, value in headers if name.lower() == "warning")
            yield from self.comparison.differences(", ".join(expected["warnings"]), warnings, "Warning")
        actual_headers = {name.lower(): value for name, value in headers}
        media_type = expected.get("content_type")
        if media_type and media_type.split(";")[0] != actual_headers.get("content-type", "").split(";")[0]:
            yield f"Content-Type: expected {media_type}, got {actual_headers.get('content-type')}"
        for name, value in (expected.get("headers") or {}).items():
            if actual_headers.get(name) != value:
                yield f"{name}: expected {value!r}, got {actual_headers.get(name)!r}"

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
        """Open the stream, send the requests of `during`, compare the events."""
        expected: list[Any] = step.get("events") or []
        opened = threading.Event()
        result: list[tuple[int, list[Any]]] = []

        def read() -> None:
            path = self.comparison.translate(step["watch"])
            result.append(self._events(path, step, len(expected), opened))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        opened.wait(DEADLINE)
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
            expected, actual = sorted(expected, key=_event_sort_key), sorted(actual, key=_event_sort_key)
        return list(self.comparison.differences(expected, actual, "events"))

    def _events(self, path: str, step: dict[str, Any], expected: int, opened: threading.Event) -> tuple[int, list[Any]]:
        """The code and the events of a stream: as many as expected, or fewer if the stream ends earlier."""
        connection = self.client.connect(DEADLINE)
        events: list[Any] = []
        rest = b""
        try:
            connection.request("GET", path, headers=_headers(step))
            answer = connection.getresponse()
            opened.set()
            if answer.status != 200:
                return answer.status, [json.loads(answer.read() or b"null")]
            deadline = time.monotonic() + DEADLINE
            while len(events) < expected and time.monotonic() < deadline:
                chunk = answer.read1(65536)
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                events += [json.loads(self._with_placeholders(line)) for line in lines if line.strip()]
        except (TimeoutError, OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return 200, events

    def _with_placeholders(self, line: bytes) -> bytes:
        return line if self.stub is None else self.stub.insert_placeholders(line.decode()).encode()


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


def _created_definitions(steps: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The names of the definitions that a case creates. They are deleted at its end, so cases may share API groups."""
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


def _created_configurations(steps: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The paths of the webhook configurations, policies, bindings and parameters that a case creates."""
    for step in steps:
        body = step.get("body")
        if step.get("method") == "POST" and isinstance(body, dict) and _CONFIGURATIONS.match(step.get("path", "")):
            yield f"{step['path'].partition('?')[0]}/{quote(body['metadata']['name'])}"


def _call_sort_key(call: dict[str, Any]) -> tuple[str, str, str]:
    request = call["review"].get("request", {})
    return call["path"], request.get("operation", ""), request.get("name", "")


def _event_sort_key(event: Any) -> tuple[str, str]:
    return event.get("type", ""), event.get("object", {}).get("metadata", {}).get("name", "")


def _holds(condition: str, code: int, body: Any) -> bool:
    status = body.get("status") if isinstance(body, dict) else None
    conditions = status.get("conditions") or [] if isinstance(status, dict) else []

    def has(kind: str, value: str | None) -> bool:
        return any(entry.get("type") == kind and value in (None, entry.get("status")) for entry in conditions)

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
    """Whether a case calls webhooks."""
    return bool(case.get("stubs")) or "{{" in json.dumps(case["steps"])


@cache
def deviations() -> dict[str, dict[str, Any]]:
    """The deviations by the id of their case."""
    return {deviation["case"]: deviation for deviation in json.loads(DEVIATIONS.read_text())}


def main() -> int:
    parser = argparse.ArgumentParser(description="Replay conversations recorded from the reference.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="FIELD", help="do not compare fields of this name"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose id contains TEXT")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    failed = total = 0
    with Client(options.url, insecure=options.insecure) as client, contextlib.ExitStack() as stack:
        stub: Stub | None = None
        for file in options.files or sorted(DATA.glob("*.jsonl")):
            cases = [case for case in read(file) if options.only in case["id"]]
            passed = 0
            if stub is None and any(map(needs_stub, cases)):
                stub = stack.enter_context(Stub())
            for case in cases:
                found = Conversation(client, case, options.ignore, stub if needs_stub(case) else None).run()
                passed += not found
                if found:
                    print(f"FAIL {case['id']}: {case.get('title', '')}\n     " + "\n     ".join(found[:12]))
            print(f"{file.name}: {passed}/{len(cases)}")
            failed, total = failed + len(cases) - passed, total + len(cases)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
