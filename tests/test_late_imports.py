"""What a server does without until it is needed: importing it takes time and memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """if True:
    import asyncio, sys
    from noxu.apiserver import cli
    from noxu.apiserver.http import lazy_client

    lazy_client.install()
    config = cli.options_of("serve", ["--memory", "--port", "0"]).config

    from noxu.apiserver.server import Server

    async def main():
        async with Server(config):
            print(*sys.modules)

    asyncio.run(main())
"""
LATE: Final = {
    "help, and arguments that are not spelled out": ("argparse", "noxu.apiserver.arguments.parsers"),
    "lists of plug-ins": ("csv",),
    "requests": ("noxu.apiserver.http.application", "noxu.apiserver.http.handlers"),
    "writes": ("noxu.apiserver.registry.write", "noxu.apiserver.registry.stages"),
    "WebSockets": ("aiohttp.web_ws",),
    "calls of webhooks": ("aiohttp.client", "noxu.apiserver.http.webhook_client", "noxu.apiserver.webhook.client"),
    "conversion by webhooks": ("noxu.apiserver.registry.conversion.review_converter",),
    "schemas": ("noxu.apiserver.schema.structural", "noxu.apiserver.registry.custom", "noxu.apiserver.cel.program"),
    "quantities": ("decimal", "noxu.apiserver.go.quantity", "noxu.apiserver.admission.builtin.usage"),
    "protobuf": ("noxu.apiserver.api.protobuf", "noxu.apiserver.registry.etcd_built_in"),
    "reviews": ("noxu.apiserver.security.reviews",),
    "selectors": ("noxu.apiserver.api.selectors",),
    "evictions and bindings": ("noxu.apiserver.registry.subresources",),
    "certificates": ("cryptography", "noxu.apiserver.controllers.certificate_issuing", "noxu.apiserver.server_tls"),
    "manifests": ("noxu.apiserver.loading", "noxu.apiserver.go.yaml"),
    "a file": ("sqlite3", "noxu.storage.sqlite"),
}


@pytest.fixture(scope="module")
def imported() -> frozenset[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("modules", LATE.values(), ids=LATE)
def test_what_serves_something_else_is_imported_with_it(imported: frozenset[str], modules: tuple[str, ...]) -> None:
    assert {"noxu.apiserver.control_plane", "aiohttp.web_protocol"} <= imported
    assert not imported.intersection(modules)
