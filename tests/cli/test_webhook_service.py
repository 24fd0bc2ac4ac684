"""`noxu serve --webhook-service`: the addresses of the webhooks of services."""

from __future__ import annotations

import pytest

from noxu import cli
from noxu.config import ServiceName


@pytest.mark.parametrize(
    ("argument", "service", "address"),
    [
        ("ns/hook=127.0.0.1:9443", ServiceName("ns", "hook", 443), "127.0.0.1:9443"),
        ("ns/hook:8443=localhost:9443", ServiceName("ns", "hook", 8443), "localhost:9443"),
        ("ns/hook=[::1]:9443", ServiceName("ns", "hook", 443), "[::1]:9443"),
    ],
)
def test_the_address_of_a_service(argument: str, service: ServiceName, address: str) -> None:
    arguments = cli.parser_of("serve").parse_args(["--webhook-service", argument, "--webhook-service", "a/b=c:1"])
    assert arguments.webhook_service == [(service, address), (ServiceName("a", "b", 443), "c:1")]


@pytest.mark.parametrize(
    "argument", ["", "hook=a:1", "ns/hook", "ns/hook=a", "ns/hook:x=a:1", "ns/hook=a:1=b:2", "a/b/c=d:1"]
)
def test_invalid_addresses_of_services(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parser_of("serve").parse_args(["--webhook-service", argument])
    assert (
        "must be NAMESPACE/NAME[:PORT]=HOST:PORT, such as default/my-webhook:443=127.0.0.1:9443"
        in capsys.readouterr().err
    )
