"""GET /_noxu/coverage counts from the first call on."""

from __future__ import annotations

import json
import urllib.request

from noxu import Noxu
from tests.definitions import version, widgets

SPEC = {"type": "object", "properties": {"size": {"type": "integer"}}}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}


def covered(noxu: Noxu) -> list[tuple[str, int, int, int]]:
    with urllib.request.urlopen(f"{noxu.url}/_noxu/coverage") as answer:
        definitions = json.loads(answer.read())["definitions"]
    return [(each["name"], each["writes"], each["covered"], each["points"]) for each in definitions]


def test_writes_count_from_the_first_call_on(noxu: Noxu) -> None:
    noxu.apply(widgets(version({"type": "object", "properties": {"spec": SPEC}})))
    noxu.apply({**WIDGET, "spec": {"size": 1}})
    assert covered(noxu) == [("widgets.example.com/v1", 0, 0, 2)]
    noxu.apply({**WIDGET, "spec": {"size": 2}})
    assert covered(noxu) == [("widgets.example.com/v1", 1, 2, 2)]
    with urllib.request.urlopen(f"{noxu.url}/_noxu/coverage?output=html") as page:
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
