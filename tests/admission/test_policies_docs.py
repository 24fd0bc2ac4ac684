"""The examples in docs/policies.md work as described."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.client import Client
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.definitions import version, widgets

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
MANIFESTS = re.findall(r"^```yaml file=\S+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CRD: Object = widgets(
    version({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}})
)


def test_the_policies_of_the_documentation_work(noxu: Noxu) -> None:
    assert len(MANIFESTS) == 2
    noxu.apply(CRD, *MANIFESTS)
    path = "/apis/example.com/v1/namespaces/default/widgets"
    with Client(noxu.url) as client:

        def create(size: int) -> Object:
            body = {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": "first"},
                "spec": {"size": size},
            }
            answer: Object = client.send("POST", path, body).body
            return answer

        assert create(6)["message"] in PAGE.splitlines()
        assert create(5)["metadata"]["labels"] == {"size": "large", "example.com/by": "system.anonymous"}
