"""What a server does without until it is needed: importing it takes time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """if True:
    import asyncio, sys
    from noxu import cli
    from noxu.http import lazy_client

    lazy_client.install()
    config = cli.options_of("serve", ["--memory", "--port", "0"]).config

    from noxu.process.server import Server

    async def main():
        async with Server(config):
            print(*sys.modules)

    asyncio.run(main())
"""
LATE: Final = {
    "lists of plug-ins": ("csv",),
    "requests": ("noxu.http.application", "noxu.http.handlers", "aiohttp.web_protocol"),
    "writes": ("noxu.registry.write", "noxu.registry.strategies", "noxu.registry.ownership"),
    "writes that admission checks": ("noxu.admission.attributes",),
    "tables": ("noxu.tables.table", "noxu.tables.printers"),
    "OpenAPI": ("noxu.http.openapi", "noxu.discovery.openapi"),
    "WebSockets": ("noxu.http.websocket", "aiohttp.web_ws"),
    "calls of webhooks": ("aiohttp.client",),
    "conversion by webhooks": ("noxu.registry.conversion.review",),
    "schemas": ("noxu.schema.structural", "noxu.schema.compiled", "noxu.registry.custom", "noxu.cel.program"),
    "quantities": ("decimal", "noxu.go.quantity", "noxu.admission.builtin.usage"),
    "protobuf": ("noxu.api.protobuf", "noxu.registry.etcd_built_in"),
    "certificates": ("cryptography",),
    "tokens that are signed": ("jwt",),
    "patterns": ("re2",),
    "JSON patches": ("jsonpatch", "jsonpointer"),
    "manifests": ("noxu.manifests.loading", "noxu.go.yaml", "yaml"),
    "metrics": ("prometheus_client", "noxu.observability.metrics"),
    "an access log or an audit log": ("noxu.http.metrics", "noxu.observability.audit_output"),
    "a file": ("sqlite3", "aiosqlite", "noxu_storage.sqlite"),
    "etcd": ("grpc", "google.protobuf", "noxu_storage.etcd", "noxu.registry.etcd_layout"),
    "progress on a terminal": ("rich",),
}
FIRST: Final = """if True:
    import asyncio, json, sys, threading
    from noxu.config import Config
    from noxu.process.server import Server

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if threading.current_thread() is threading.main_thread():
                print(name)

    async def send(port, path, media_type, body):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\nContent-Type: {media_type}\\r\\n"
        writer.write(f"{head}Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 201"), answer
        writer.close()

    async def main():
        async with Server(Config(port=0)) as server:
            port = int(server.url.rpartition(":")[2])
            sys.meta_path.insert(0, Finder())
            for request in json.loads(sys.argv[1]):
                await send(port, *request)

    asyncio.run(main())
"""
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
RULES: Final = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}]
POLICY: Final = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"},
    "spec": {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]},
}
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: a, image: b}]
"""
REQUESTS: Final = [
    (POLICIES, "application/json", json.dumps(POLICY)),
    ("/api/v1/namespaces/default/pods", "application/yaml", POD),
]
IN_A_THREAD: Final = {
    "what requests need": "noxu.http.application",
    "the engine of expressions, with the first policy": "noxu.cel.program",
    "the types of expressions": "noxu.admission.expressions",
    "YAML": "noxu.go.yaml",
    "the rules of Pods": "noxu.kinds.pods",
}


@pytest.fixture(scope="module")
def imported_in_the_loop() -> frozenset[str]:
    """The modules that the thread of the event loop imports while a server answers its first requests."""
    command = [sys.executable, "-c", FIRST, json.dumps(REQUESTS)]
    return frozenset(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("module", IN_A_THREAD.values(), ids=IN_A_THREAD)
def test_a_large_room_is_imported_in_a_thread(imported_in_the_loop: frozenset[str], module: str) -> None:
    assert "noxu.kinds.admissionregistration" in imported_in_the_loop, "a small module"
    assert module not in imported_in_the_loop


@pytest.fixture(scope="module")
def imported() -> frozenset[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("modules", LATE.values(), ids=LATE)
def test_what_serves_something_else_is_imported_with_it(imported: frozenset[str], modules: tuple[str, ...]) -> None:
    assert {"noxu.control_plane", "aiohttp.http_parser"} <= imported
    assert not imported.intersection(modules)


OF_A_START: Final = {"aiohttp", "attr", "idna", "multidict", "noxu", "noxu_storage", "orjson", "propcache", "yarl"}
"""The packages that a server imports when it starts. Another one is a decision: each takes milliseconds."""
COMPILED: Final = "cython_runtime"  # a module that extensions in Cython make


def test_a_start_imports_few_packages(imported: frozenset[str]) -> None:
    packages = {module.partition(".")[0] for module in imported} - sys.stdlib_module_names - {COMPILED}
    assert {package for package in packages if not package.startswith("_")} <= OF_A_START
