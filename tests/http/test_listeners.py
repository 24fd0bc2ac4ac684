"""A running server on several sockets: an address with TLS, a Unix socket without, and inherited ones."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

import aiohttp
import pytest

from noxu.config import Config, TlsOptions
from noxu.process.running import banner
from noxu.process.server import Server


async def get(url: str, connector: aiohttp.BaseConnector) -> tuple[int, str]:
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
        return answer.status, await answer.text()


def trusting(server: Server) -> aiohttp.TCPConnector:
    return aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=server.access().certificate_authority.decode()))


async def test_a_unix_socket_speaks_http_beside_https(tmp_path: Path) -> None:
    path = tmp_path / "s"
    config = Config(port=0, tls=TlsOptions(), listen=(f"unix:{path}",), authorization_modes=("RBAC",))
    async with Server(config) as server:
        assert await get(f"{server.url}/livez", trusting(server)) == (200, "ok")
        assert await get("http://localhost/livez", aiohttp.UnixConnector(str(path))) == (200, "ok")
        assert f"  also at     unix:{path}\n" in banner(server.config, server.url, path)
    assert not path.exists()


async def test_an_inherited_socket_is_the_address_of_the_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as made:
        async with Server(Config(listen=(f"fd:{os.dup(made.fileno())}",))) as server:
            assert server.url == f"http://127.0.0.1:{made.getsockname()[1]}"
            assert await get(f"{server.url}/livez", aiohttp.TCPConnector()) == (200, "ok")


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1")])
async def test_the_url_is_one_that_this_machine_reaches(host: str, shown: str) -> None:
    async with Server(Config(host=host, port=0, tls=TlsOptions())) as server:
        assert server.url == f"https://{shown}:{server.listeners.port}"
        assert (await get(f"{server.url}/livez", trusting(server)))[0] in (200, 401)


async def test_off_loopback_an_anonymous_user_may_only_do_what_rbac_grants() -> None:
    async with Server(Config(host="0.0.0.0", port=0)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert await get(f"{server.url}/readyz", trusting(server)) == (200, "ok")
        status, text = await get(f"{server.url}/api/v1/namespaces", trusting(server))
    assert status == 403
    assert 'User \\"system:anonymous\\" cannot list resource \\"namespaces\\"' in text


async def test_another_name_of_the_server_is_in_its_certificate_and_url() -> None:
    config = Config(
        host="127.0.0.1", port=0, tls=TlsOptions(), external_hostname="localhost", authorization_modes=("RBAC",)
    )
    async with Server(config) as server:
        assert server.url == f"https://localhost:{server.listeners.port}"
        assert await get(f"{server.url}/livez", trusting(server)) == (200, "ok")
