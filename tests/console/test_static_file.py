"""The console as one file: its policy, and data that are hostile."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Final

from noxu.console.static_file import embedded, page
from noxu.values import Json
from tests.rows import rows

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029\x00\x7f",
    "\\u003c/script>",
    "&lt;/script&gt;",
    "\ud800",
    "' \" ` ${alert(1)} {{7*7}}",
    '<link rel="stylesheet" href="/_noxu/console/style.css">',
    "<body>",
    '<meta charset="utf-8">',
    "javascript:alert(1)",
)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts of scripts and styles."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_names_the_one_script_and_the_one_style() -> None:
    elements = Elements(page({}))
    [policy] = [about["content"] for tag, about in elements.found if about.get("http-equiv")]
    [style] = elements.texts["style"]
    script, _ = elements.texts["script"]
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hashed(script)}",
        f"style-src {hashed(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_nothing_is_loaded_from_anywhere() -> None:
    addresses = [
        value for _, about in Elements(page({})).found for name, value in about.items() if name in ("src", "href")
    ]
    assert [address for address in addresses if not str(address).startswith("data:")] == []


@rows("text", HOSTILE)
def test_hostile_data_stay_data(text: str) -> None:
    """As a name, as a value, as a path: the page has the elements that it always has, and the data are what they were."""
    answers: Json = {text: {"metadata": {"name": text, "labels": {text: text}}, "message": text, "steps": [text]}}
    assert isinstance(answers, dict)
    elements, usual = Elements(page(answers)), Elements(page({}))
    assert [tag for tag, _ in elements.found] == [tag for tag, _ in usual.found]
    assert json.loads(elements.texts["script"][1]) == answers
    assert elements.texts["script"][0] == usual.texts["script"][0]


@rows("text", HOSTILE)
def test_embedded_data_have_no_markup(text: str) -> None:
    assert not re.search(r"[<>&]|[^\x20-\x7e]", embedded({text: [text]}))
    assert json.loads(embedded({text: [text]})) == {text: [text]}
