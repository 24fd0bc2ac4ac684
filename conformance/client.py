"""A small synchronous client for any Kubernetes API server."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
http.client._MAXHEADERS = 10_000  # type: ignore[attr-defined]  # noqa: SLF001 - an answer may have hundreds of Warning headers
DEADLINE = 60.0  # seconds: for one answer, and for a new definition to be served


class Answer(NamedTuple):
    code: int
    body: Any
    """The decoded JSON, or the text if it is not JSON."""


class Client:
    """Sends requests over one connection and reconnects when the server has closed it.

    `insecure`: do not verify the server's certificate.
    """

    def __init__(self, url: str, *, insecure: bool = False) -> None:
        self._url = urlsplit(url)
        self._insecure = insecure
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def connect(self, timeout: float = DEADLINE) -> http.client.HTTPConnection:
        """Open a further connection, which the caller closes."""
        host, port = self._url.hostname or "127.0.0.1", self._url.port
        if self._url.scheme == "https":
            context = ssl._create_unverified_context() if self._insecure else ssl.create_default_context()  # noqa: SLF001
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Send one request unchanged; return the code, headers and body of the answer.

        A request that fails because the kept connection was closed is sent again.
        """
        for is_last_attempt in (False, True):
            try:
                self._connection = self._connection or self.connect()
                self._connection.request(method, path, body=body, headers=headers)
                answer = self._connection.getresponse()
                data = answer.read()
            except (http.client.HTTPException, ConnectionError):
                self.close()
                if is_last_attempt:
                    raise
                continue
            if answer.will_close:
                self.close()
            return answer.status, answer.getheaders(), data
        raise AssertionError("unreachable")

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send one request whose body is JSON, or bytes that are sent unchanged."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if data is not None else {})
        code, _, text = self.exchange(method, path, data, headers)
        try:
            return Answer(code, json.loads(text))
        except ValueError:
            return Answer(code, text.decode("utf-8", "replace"))

    def create_definition(self, crd: dict[str, Any]) -> Answer:
        return self.send("POST", DEFINITIONS, crd)

    def until_served(self, group: str, version: str, plural: str) -> None:
        """Wait until the resource can be listed: the reference takes about two seconds after the CRD is created."""
        wait_until(lambda: self.send("GET", f"/apis/{group}/{version}/{plural}").code == 200)

    def delete_definition(self, name: str) -> None:
        """Delete a CRD without waiting until it is gone."""
        self.send("DELETE", f"{DEFINITIONS}/{name}")


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll `condition`. Raises TimeoutError if it does not hold within DEADLINE."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the server did not reach the expected state within {DEADLINE:.0f} s")
        time.sleep(0.01)
