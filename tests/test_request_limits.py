"""Limits on requests and the address of a server, from its configuration to its answers; and the options for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from noxu import cli
from noxu.config import Config, Requests, StartError
from noxu.process import running
from noxu.process.server import Server
from tests.timing import hang_guard

MAPS = "/api/v1/namespaces/default/configmaps"


async def endless() -> AsyncIterator[bytes]:
    """A body of which only the beginning arrives, until the client is closed."""
    yield b"{"
    await asyncio.Event().wait()


@pytest.mark.parametrize("query", ["", "?timeout=1h"], ids=["of the server", "which a client cannot extend"])
async def test_a_request_takes_no_longer_than_the_timeout(query: str) -> None:
    async with (
        Server(Config(port=0, requests=Requests(timeout=0.05))) as running,
        aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session,
        hang_guard(),
        session.post(running.url + MAPS + query, data=endless()) as answer,
    ):
        assert answer.status == 504
        assert "request did not complete within the allotted timeout" in await answer.text()


async def test_a_watch_lasts_for_the_minimum() -> None:
    """Of no time: it ends as soon as it has begun. A duration in the query counts instead."""
    async with Server(Config(port=0, requests=Requests(min_timeout=0))) as running, aiohttp.ClientSession() as session:
        async with (
            hang_guard(),
            session.get(
                f"{running.url}{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
            ) as answer,
        ):
            assert (answer.status, await answer.read()) == (200, b"")
        async with session.get(f"{running.url}{MAPS}?watch=1&timeoutSeconds=600") as answer:
            assert answer.status == 200
            assert not answer.content.at_eof()


async def endpoints(running: Server) -> tuple[Any, Any]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{running.url}/api/v1/namespaces/default/endpoints/kubernetes") as answer:
            subsets = (await answer.json()).get("subsets")
        path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
        async with session.get(running.url + path) as answer:
            return subsets, (await answer.json()).get("endpoints")


async def test_the_advertised_address_is_that_of_the_endpoints() -> None:
    async with Server(Config(port=0, advertise_address="192.0.2.9")) as running:
        subsets, slices = await endpoints(running)
        assert subsets[0]["addresses"] == [{"ip": "192.0.2.9"}]
        assert slices[0]["addresses"] == ["192.0.2.9"]


async def test_endpoints_are_never_on_loopback() -> None:
    async with Server(Config(port=0, advertise_address="127.0.0.1")) as running:
        assert await endpoints(running) == (None, [])


async def test_an_advertised_address_of_another_family_than_services_is_refused() -> None:
    with pytest.raises(StartError) as refused:
        await Server(Config(port=0, advertise_address="2001:db8::1")).__aenter__()
    assert str(refused.value) == (
        'service IP family "10.0.0.0/24" must match public address family "2001:db8::1"'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "host", "status"),
    [
        ("noxu.test", "noxu.test:{port}", 200),
        ("Noxu.test", "noxu.TEST", 200),
        ("noxu.test", "evil.example", 403),
        ("", "noxu.test", 403),
    ],
    ids=["its external name", "in another case", "another name", "a server without a name"],
)
async def test_without_tls_the_header_host_may_be(name: str, host: str, status: int) -> None:
    async with Server(Config(port=0, external_hostname=name)) as running, aiohttp.ClientSession() as session:
        assert running.url == f"http://{name or '127.0.0.1'}:{running.listeners.port}"
        headers = {"Host": host.format(port=running.listeners.port)}
        async with session.get(f"http://127.0.0.1:{running.listeners.port}/version", headers=headers) as answer:
            assert answer.status == status


async def test_an_external_name_that_no_url_can_have_is_refused() -> None:
    with pytest.raises(StartError) as refused:
        await Server(Config(port=0, external_hostname="a b")).__aenter__()
    assert str(refused.value) == "--external-hostname a b is neither a DNS name nor an address"


# -- web pages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def with_pages() -> AsyncIterator[Server]:
    limits = Requests(cors_allowed_origins=("^https://app\\.example$",))
    config = Config(port=0, requests=limits, authorization_modes=("AlwaysDeny",))
    async with Server(config) as running:
        yield running


EXCHANGES: dict[str, tuple[str, dict[str, str], int, str | None]] = {
    "a preflight": ("OPTIONS", {"Origin": "https://app.example", "Access-Control-Request-Method": "PUT"}, 204, "https://app.example"),
    "a request of the page, also one that is refused": (
        "GET", {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}, 403, "https://app.example"),
    "the preflight of another page": ("OPTIONS", {"Origin": "https://evil.example"}, 403, None),
    "a client that is no browser": ("GET", {}, 403, None),
}  # fmt: skip


@pytest.mark.parametrize(("method", "headers", "code", "allowed"), EXCHANGES.values(), ids=EXCHANGES)
async def test_the_answer_to(
    with_pages: Server, method: str, headers: dict[str, str], code: int, allowed: str | None
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, with_pages.url + MAPS, headers=headers) as answer,
    ):
        assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (code, allowed)
        assert "Audit-Id" in answer.headers
        if code == 204:
            assert await answer.read() == b""
            assert "Content-Type" not in answer.headers


# -- options ----------------------------------------------------------------------------------------------------------

GIVEN: dict[str, tuple[str, Config]] = {
    "nothing": ("", Config()),
    "a timeout": ("--request-timeout 5m", Config(requests=Requests(timeout=300.0))),
    "the minimum of watches": ("--min-request-timeout 60", Config(requests=Requests(min_timeout=60))),
    "requests in flight": ("--max-requests-inflight 0 --max-mutating-requests-inflight 7",
                           Config(requests=Requests(max_in_flight=0, max_mutating_in_flight=7))),
    "origins": ("--cors-allowed-origins ^a$,//b: --cors-allowed-origins //c(:|$)",
                Config(requests=Requests(cors_allowed_origins=("^a$", "//b:", "//c(:|$)")))),
    "an address": ("--advertise-address 192.0.2.9", Config(advertise_address="192.0.2.9")),
    "the address that means all": ("--advertise-address 0.0.0.0", Config()),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "expected"), GIVEN.values(), ids=GIVEN)
def test_the_options(monkeypatch: pytest.MonkeyPatch, arguments: str, expected: Config) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
    assert cli.main(["serve", "--memory", *arguments.split()]) == 0
    assert [(each.requests, each.advertise_address) for each in configs] == [
        (expected.requests, expected.advertise_address)
    ]


REFUSED: dict[str, tuple[str, str]] = {
    "no time": ("--request-timeout 0", "--request-timeout: must be a positive duration, such as 30s or 5m"),
    "a negative number": ("--max-requests-inflight=-1", "--max-requests-inflight: must be a number that is not negative"),
    "an open expression": (
        "--cors-allowed-origins a", "--cors-allowed-origins: --cors-allowed-origins has an invalid regular expression: "
        "regular expression does not pin to start/end of host in the origin header"),
    "a name": ("--advertise-address a", "--advertise-address: must be an IP address"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_an_option_is_refused_with(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run", lambda *_, **__: pytest.fail("the server was started"))
    with pytest.raises(SystemExit):
        cli.main(["serve", *arguments.split()])
    assert capsys.readouterr().err.splitlines()[-1] == f"noxu serve: error: argument {message}"
