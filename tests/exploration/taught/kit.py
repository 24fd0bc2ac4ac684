"""What a small controller needs of a client: requests, and an informer for each resource. Standard library and YAML only.

A controller of this kit is as simple as one can be: a queue of names, one thread that reconciles, informers whose caches it reads.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import queue
import signal
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

Name = tuple[str, str]
"""Namespace and name."""
FIRST_WAIT = 0.005  # seconds
LONGEST = 5  # times the wait is doubled: no longer than a run waits for silence


class Refused(Exception):
    def __init__(self, code: int, status: dict[str, Any], retry_after: float = 0) -> None:
        super().__init__(f"{code} {status.get('reason')}: {status.get('message')}")
        self.code, self.reason, self.retry_after = code, status.get("reason", ""), retry_after


class Backoff:
    """How long to wait after so many failures in a row, and as long as the server has asked for."""

    def __init__(self) -> None:
        self.failures: dict[Any, int] = {}

    def after(self, what: Any, error: Exception) -> float:
        self.failures[what] = self.failures.get(what, 0) + 1
        return max(FIRST_WAIT * 2 ** min(self.failures[what], LONGEST), getattr(error, "retry_after", 0))

    def succeeded(self, what: Any) -> None:
        self.failures.pop(what, None)


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


class Client:
    def __init__(self) -> None:
        config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"]
        self.tls = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            file.flush()
            self.tls.load_cert_chain(file.name)

    def _open(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", timeout: float = 30
    ) -> Any:
        headers = {"Content-Type": kind, "User-Agent": "taught/1"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=timeout, context=self.tls)
        except urllib.error.HTTPError as error:
            text = error.read()
            status = json.loads(text) if text[:1] == b"{" else {"message": text.decode()}
            raise Refused(error.code, status, float(error.headers.get("Retry-After") or 0)) from None

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        with self._open(method, path, body, kind) as answer:
            return json.load(answer)

    def get(self, path: str) -> Any:
        try:
            return self.ask("GET", path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def create(self, path: str, value: Any) -> Any:
        return self.ask("POST", path, value)

    def update(self, path: str, value: Any) -> Any:
        return self.ask("PUT", path, value)

    def patch(self, path: str, value: Any) -> Any:
        return self.ask("PATCH", path, value, "application/merge-patch+json")

    def delete(self, path: str, uid: str = "") -> Any:
        options = {"preconditions": {"uid": uid}} if uid else {}
        try:
            return self.ask("DELETE", path, options)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def watch(self, path: str, version: str) -> Iterator[Any]:
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        with self._open("GET", path + query, timeout=3600) as lines:
            for line in lines:
                yield json.loads(line)


class Informer(threading.Thread):
    """A cache of one collection; `changed(type, old, new)` is called for each change."""

    def __init__(self, client: Client, path: str, changed: Callable[[str, Any, Any], None]) -> None:
        super().__init__(daemon=True)
        self.client, self.path, self.changed = client, path, changed
        self.cache: dict[Name, Any] = {}
        self.synced = threading.Event()
        self.backoff = Backoff()

    def run(self) -> None:
        while True:
            try:
                self._list_and_watch()
            except (Refused, OSError, ValueError, http.client.HTTPException) as error:
                time.sleep(self.backoff.after("list", error))

    def _list_and_watch(self) -> None:
        listed = self.client.ask("GET", self.path + "?resourceVersion=0")
        there = {key(item): item for item in listed["items"]}
        for gone in set(self.cache) - set(there):
            self.changed("DELETED", self.cache.pop(gone), None)
        for name, item in there.items():
            old = self.cache.get(name)
            self.cache[name] = item
            self.changed("MODIFIED" if old else "ADDED", old, item)
        self.synced.set()
        self.backoff.succeeded("list")
        version = listed["metadata"]["resourceVersion"]
        while True:
            for event in self.client.watch(self.path, version):
                if event["type"] == "ERROR":
                    return
                item = event["object"]
                version = item["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                old = self.cache.get(key(item))
                if event["type"] == "DELETED":
                    self.cache.pop(key(item), None)
                    self.changed("DELETED", item, None)
                else:
                    self.cache[key(item)] = item
                    self.changed(event["type"], old, item)

    def get(self, namespace: str, name: str) -> Any:
        return self.cache.get((namespace, name))


def key(item: Any) -> Name:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class Controller:
    """`reconcile(key)` is called by one thread, again after an exception. `follow` maps an object to the keys that it concerns."""

    def __init__(self) -> None:
        self.client = Client()
        self.queue: queue.Queue[Name] = queue.Queue()
        self.waiting: set[Name] = set()
        self.lock = threading.Lock()
        self.informers: list[Informer] = []
        self.backoff = Backoff()
        self.handlers()

    def handlers(self) -> None:
        raise NotImplementedError

    def reconcile(self, name: Name) -> None:
        raise NotImplementedError

    def follow(self, path: str, keys: Callable[[Any], list[Name]] = lambda item: [key(item)]) -> Informer:
        def changed(_kind: str, old: Any, new: Any) -> None:
            for each in keys(new or old):
                self.add(each)

        informer = Informer(self.client, path, changed)
        self.informers.append(informer)
        return informer

    def add(self, name: Name) -> None:
        with self.lock:
            if name not in self.waiting:
                self.waiting.add(name)
                self.queue.put(name)

    def main(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        for informer in self.informers:
            informer.start()
        for informer in self.informers:
            informer.synced.wait()
        threading.Thread(target=self.work, daemon=True).start()
        signal.pause()

    def work(self) -> None:
        while True:
            name = self.queue.get()
            with self.lock:
                self.waiting.discard(name)
            try:
                self.reconcile(name)
                self.backoff.succeeded(name)
            except (Refused, OSError, http.client.HTTPException) as error:
                sys.stderr.write(f"{name}: {error}\n")
                threading.Timer(self.backoff.after(name, error), self.add, [name]).start()
            except Exception as error:  # noqa: BLE001 - it ends the program, as a panic does
                sys.stderr.write(f"panic: {error!r}\n")
                sys.stderr.flush()
                os._exit(2)


def owner(value: Any) -> dict[str, Any]:
    metadata = value["metadata"]
    return {
        "apiVersion": value["apiVersion"],
        "kind": value["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
