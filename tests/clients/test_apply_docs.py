"""The console sessions in docs/apply.md are what kubectl prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from noxu.apiserver.testing.handle import Noxu

TEXT: Final = (Path(__file__).parents[2] / "docs" / "apply.md").read_text()
_FENCED: Final = re.compile(r"^```(\w+)(?: file=(\w+)\.yaml)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_print_the_documented_output(server: Noxu, session: Callable[..., None]) -> None:
    blocks = _FENCED.findall(TEXT)
    files = {name: text for language, name, text in blocks if language == "yaml"}
    console = [text for language, _, text in blocks if language == "console"]
    assert len(console) >= 7
    server.apply(files.pop("crd"))
    session("".join(console), **files)
