"""The console sessions in docs/apply.md are what kubectl prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.testing.handle import Noxu
from tests.docs.blocks import blocks

BLOCKS: Final = [block for block in blocks() if block.page == "docs/apply.md"]


def test_the_commands_of_the_page_print_the_documented_output(server: Noxu, session: Callable[..., None]) -> None:
    files = {block.file.removesuffix(".yaml"): block.text for block in BLOCKS if block.language == "yaml"}
    console = [block.text for block in BLOCKS if block.language == "console"]
    assert len(console) >= 7
    server.apply(files.pop("crd"))
    session("".join(console), **files)
