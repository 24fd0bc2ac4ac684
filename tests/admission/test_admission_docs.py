"""The example in docs/admission.md works as described."""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu

TEXT = (Path(__file__).parents[2] / "docs" / "admission.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Where the page's webhook listens."""
    path = tmp_path / "webhook.py"
    path.write_text(FILES["webhook.py"].replace("def do_POST", "def log_message(self, *_): ...\n    def do_POST"))
    spec = importlib.util.spec_from_file_location("webhook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.ThreadingHTTPServer(("127.0.0.1", 0), module.Webhook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_webhook_of_the_documentation_works(noxu: Noxu, port: int) -> None:
    assert set(FILES) == {"webhook.py", "webhooks.yaml"}
    noxu.apply(FILES["webhooks.yaml"].replace("9443", str(port)))
    with Client(noxu.url) as client:

        def write(method: str, path: str, size: int) -> Any:
            body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": size}}
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            return client.send(method, path, body, kind).body

        assert write("POST", WIDGETS, 5)["spec"] == {"by": "system:anonymous", "size": 5}
        assert write("PATCH", f"{WIDGETS}/a", 6)["spec"] == {"by": "system:anonymous", "size": 6}
        assert write("PATCH", f"{WIDGETS}/a", 5)["message"] in TEXT.replace("it was 5", "it was 6")
