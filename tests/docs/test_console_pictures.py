"""The pictures of the console: small, shown with a text instead, and made of a story that the server plays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from docs.console_pictures import DATABASES, FOLDER, LIVE, PATH, RECORDED, Client, played

ROOT: Final = Path(__file__).parents[2]
MOST_BYTES: Final = 150_000


def test_each_picture_is_small_and_shown_in_the_page_of_the_console() -> None:
    names = {f"{picture.name}.webp" for picture in (*LIVE, *RECORDED)}
    assert {file.name for file in FOLDER.iterdir()} == names
    assert [file.name for file in FOLDER.iterdir() if file.stat().st_size > MOST_BYTES] == []
    shown = re.findall(r"!\[([^\]]+)\]\(console/([\w.-]+)\)", (ROOT / "docs/console.md").read_text())
    assert {name for _, name in shown} == names
    assert [name for said, name in shown if len(said) < 30] == []


@pytest.mark.slow
def test_the_story_is_what_the_pictures_say(tmp_path: Path) -> None:
    with played(tmp_path / "run.noxu", faults=True) as server:
        client = Client(server.url, "test")
        _, timeline = client.send("GET", "/_noxu/console/timeline")
        code, orders = client.send("GET", f"{PATH}/orders")
        client.close()
    refused = [(mark["lane"], mark["code"]) for mark in timeline["marks"] if mark["what"] == "refused"]
    assert refused == [("database-operator/v2.1", 503), ("kubectl/v1.37.0", 422)]
    assert (code, orders["status"]["observedGeneration"], orders["spec"]["storage"]["size"]) == (200, 3, "50Gi")
    assert f"{DATABASES} shop/orders" in {
        f"{mark['resource']} {mark['namespace']}/{mark['name']}" for mark in timeline["marks"]
    }
