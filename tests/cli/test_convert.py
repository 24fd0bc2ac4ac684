"""`noxu convert`: objects at another version, round trips, functions and webhooks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from noxu.values import Object, copy
from tests.generation.test_kinds import crd
from tests.rows import rows
from tests.upgrades.test_changes import of
from tests.upgrades.test_round_trips import ADDRESS, HOST, split, widget

Make = Callable[..., Any]
FUNCTION = """
def convert(value, version):
    spec = value["spec"]
    if version.endswith("/v2"):
        spec["host"], _, spec["port"] = spec.pop("address", "").partition(":")
    else:
        spec["address"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
"""


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.pop("request")
        for value in request["objects"]:
            split(value, request["desiredAPIVersion"])
            value["apiVersion"] = request["desiredAPIVersion"]
        response = {"uid": request["uid"], "convertedObjects": request["objects"], "result": {"status": "Success"}}
        answer = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def two(v2: Any, config: Object | None = None) -> Object:
    """A CRD with an address in v1."""
    value = copy(crd(ADDRESS).value)
    value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"] = v2
    if config is not None:
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
        value["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return value


SERVICE = {"service": {"namespace": "a", "name": "b"}, "caBundle": "YQ=="}
TO_V2 = "apiVersion: example.com/v2\nkind: Widget\n"


@rows(
    "words, status, out, err",
    [
        ("-f none.json -f widget.json --to v2", 0, TO_V2, ""),
        ("-f none.json -f widget.json --to v1", 0, "spec:\n  address: a:80\n", ""),
        ("-f webhook.json -f widget.json --to v2", 0, 'spec:\n  host: a\n  port: "80"\n', ""),
        ("-f service.json -f widget.json --to v2 --function widgets.example.com=conversion_of_widgets:convert", 0, 'port: "80"\n', ""),
        ("-f none.json --round-trips 5", 1, "v1 → v2 → v1: 4 of 5 objects change: spec.address is lost\n", ""),
        ("-f none.json -f widget.json --round-trips 0", 1, '1 of 1 objects change: spec.address is lost\n    {"spec":{"address":"a:80"}}: spec.address is lost', ""),
        ("-f webhook.json -f widget.json --round-trips 0 --to v1", 0, "v1 → v2 → v1: 1 objects return as they were", ""),
        ("-f none.json --round-trips 5 --output json", 1, '"fields": [\n            "spec.address"', ""),
        ("-f service.json -f widget.json --to v2", 2, "", "its webhook is a Service: say with --webhook-service where it is; or give --function"),
        ("-f elsewhere.json -f widget.json --to v2", 2, "", "its webhook at example.com is not called, because it is not on this machine"),
        ("-f none.json -f widget.json --to v3", 2, "", "Widget has no version v3; there are: v1, v2"),
        ("-f widget.json --to v2", 2, "", "no CRD in the files defines example.com/v1 Widget"),
        ("-f none.json --to v2 --function a=absent:b", 2, "", "--function absent:b: No module named 'absent'"),
        ("-f none.json --to v2 --function gears.example.com=conversion_of_widgets:convert", 2, "", "no CRD is named gears.example.com"),
        ("-f none.json --to v2 --function a", 2, "", "must be CRD=MODULE:NAME"),
        ("-f none.json --to v2", 2, "", "none.json: there is no object to convert"),
        ("-f none.json --round-trips 5 --to v3", 2, "", "no CRD has a version v3; there are: v1, v2"),
        ("-f https://example.com/a.yaml --to v2", 2, "", "curl -fsSL https://example.com/a.yaml | noxu convert -f -"),
        ("-f none.json", 2, "", "give --to VERSION, or --round-trips N"),
        ("--to v2", 2, "", "give the CRDs and objects with -f PATH"),
        ("-f none.json --to v2 --output json", 2, "", "--output is for --round-trips"),
        ("-f down.json -f widget.json --to v2", 1, "", "conversion webhook for example.com/v1, Kind=Widget failed"),
    ],
)  # fmt: skip
def test_conversions(run: Make, write: Make, url: str, words: str, status: int, out: str, err: str) -> None:
    write("none.json", two(of()))
    write("webhook.json", two(HOST, {"url": url}))
    write("service.json", two(HOST, SERVICE))
    write("elsewhere.json", two(HOST, {"url": "https://example.com/convert", "caBundle": "YQ=="}))
    write("down.json", two(HOST, {"url": "http://127.0.0.1:1/"}))
    write("widget.json", widget(address="a:80"))
    write("conversion_of_widgets.py", FUNCTION)
    ran = run(f"convert {words}")
    assert ran.status == status
    assert out in ran.out
    assert err in ran.err
    assert bool(ran.err) is bool(err)
