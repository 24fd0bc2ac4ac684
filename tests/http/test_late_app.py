"""The application of a server is made when the first request arrives: what is imported when, and who waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.timing import HANGS_AFTER

ROOT = Path(__file__).parents[2]
LATE = (
    "noxu.apiserver.http.app", "noxu.apiserver.http.handlers", "noxu.apiserver.registry.stages",
    "noxu.apiserver.schema.structural", "noxu.apiserver.apply.manager", "noxu.apiserver.admission.attributes", "jsonpatch",
    "encodings.idna",
)  # fmt: skip
UNUSED = ("encodings.idna",)
CODE = """if True:
    import asyncio, json, sys
    from noxu.apiserver.config import Config
    from noxu.apiserver.http import lazy_client
    lazy_client.install()
    from noxu.apiserver.server import Server
    from tests.timing import longest_block

    async def send(port, method, path, body=b""):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"{method} {path} HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
        writer.write(f"{head}Content-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n".encode() + body)
        answer = await reader.read()
        writer.close()
        return int(answer.split()[1])

    async def main():
        late = sys.argv[1].split(",")
        async with Server(Config(data=None, port=0)) as server:
            before = [name for name in late if name in sys.modules]
            port = server.listeners.port
            name = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
            create = send(port, "POST", "/api/v1/namespaces/default/configmaps", json.dumps(name).encode())
            requests = (create, *(send(port, "GET", "/readyz") for _ in range(5)))
            codes, block = await longest_block(lambda: asyncio.gather(*requests))
            after = [name for name in late if name in sys.modules]
            print(json.dumps({"before": before, "codes": codes, "after": after, "block": block}))

    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    script = tmp_path_factory.mktemp("late") / "script.py"
    script.write_text(CODE)
    command = [sys.executable, str(script), ",".join(LATE)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment, timeout=HANGS_AFTER
    )
    return json.loads(done.stdout)


def test_a_server_without_requests_has_not_imported_it(found: Any) -> None:
    assert found["before"] == []


def test_requests_that_arrive_together_wait_for_it(found: Any) -> None:
    assert found["codes"] == [201, *[200] * 5]
    assert found["after"] == [name for name in LATE if name not in UNUSED]


def test_the_event_loop_is_not_held_by_importing_it(found: Any) -> None:
    assert found["block"] < 0.05
