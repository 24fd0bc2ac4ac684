"""`noxu serve --webhook-service`: where the webhooks of services are."""

from __future__ import annotations

import pytest

from apiserver import cli
from apiserver.config import ServiceName


@pytest.mark.parametrize(
    ("given", "service", "address"),
    [
        ("ns/hook=127.0.0.1:9443", ServiceName("ns", "hook", 443), "127.0.0.1:9443"),
        ("ns/hook:8443=localhost:9443", ServiceName("ns", "hook", 8443), "localhost:9443"),
        ("ns/hook=[::1]:9443", ServiceName("ns", "hook", 443), "[::1]:9443"),
    ],
)
def test_a_service_and_where_it_is(given: str, service: ServiceName, address: str) -> None:
    arguments = cli.parser().parse_args(["serve", "--webhook-service", given, "--webhook-service", "a/b=c:1"])
    assert arguments.webhook_service == [(service, address), (ServiceName("a", "b", 443), "c:1")]


@pytest.mark.parametrize(
    "given", ["", "hook=a:1", "ns/hook", "ns/hook=a", "ns/hook:x=a:1", "ns/hook=a:1=b:2", "a/b/c=d:1"]
)
def test_what_is_no_service(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["serve", "--webhook-service", given])
    assert "it is like default/my-webhook:443=127.0.0.1:9443" in capsys.readouterr().err
