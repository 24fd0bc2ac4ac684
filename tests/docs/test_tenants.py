"""docs/tenants.md: its blocks are run as they are, against a server, in each language whose toolchain is here."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from typing import Final

from noxu.testing.handle import Noxu
from tests.docs.blocks import Block, blocks, steps
from tests.optional import require_program
from tests.timing import HANGS_AFTER, eventually

PAGE: Final = "docs/tenants.md"
URL: Final = "http://127.0.0.1:6440"
"""Of the server on the page."""
BLOCKS: Final = [block for block in blocks() if block.page == PAGE]


def blocks_in(language: str) -> list[Block]:
    found = [block for block in BLOCKS if block.language == language]
    assert found
    return found


def test_curl_holds_a_tenant(noxu: Noxu) -> None:
    require_program("curl")
    [block] = blocks_in("console")
    [(command, printed)] = steps(block.text)
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command.replace(URL, noxu.url)}"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline())
        assert list(made) == list(json.loads(printed))
    finally:
        process.kill()
        process.communicate(timeout=HANGS_AFTER)
    eventually(lambda: made["name"] not in names(noxu))


def names(noxu: Noxu) -> set[str]:
    with urllib.request.urlopen(f"{noxu.url}/_noxu/tenants") as answer:
        return {each["name"] for each in json.load(answer)["items"]}
