"""docs/apply.md tells the truth: its console shows what kubectl shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from apiserver.testing.handle import Noxu

TEXT: Final = (Path(__file__).parents[2] / "docs" / "apply.md").read_text()
_FENCED: Final = re.compile(r"^```(\w+)(?: file=(\w+)\.yaml)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_console_of_the_page(server: Noxu, session: Callable[..., None]) -> None:
    blocks = _FENCED.findall(TEXT)
    files = {name: text for language, name, text in blocks if language == "yaml"}
    console = [text for language, _, text in blocks if language == "console"]
    assert len(console) >= 7
    server.apply(files.pop("crd"))
    session("".join(console), **files)
