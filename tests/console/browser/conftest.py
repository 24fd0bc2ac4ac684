"""A server and a browser for all tests of a module: Chromium of the machine, driven by Playwright.

Playwright's loop runs in the thread of the test, so the handle's calls would be awaited there: tests change objects through
`api`, a client of its own. Screenshots are kept in the folder NOXU_ARTEFACTS; tests judge a page by what it says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from noxu import Noxu
from noxu.commands.api_client import ApiClient, endpoint_from_kubeconfig
from tests import optional
from tests.console.definition import WIDGETS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}


def chromium() -> str:
    """The path of the browser. Skips the test without one, or without Playwright."""
    optional.require_package("playwright")
    return found() or optional.skip_without_program("chromium")


@cache
def found() -> str | None:
    """The path of a browser that runs: one whose installation was interrupted may be there without its libraries."""
    programs = filter(None, map(shutil.which, CHROMIUM))
    return next(
        (
            each
            for each in programs
            if subprocess.run([each, "--version"], capture_output=True, check=False).returncode == 0
        ),
        None,
    )


def write(page: Page, label: str, text: str) -> None:
    """Replace what is in an editor."""
    editor = page.get_by_role("textbox", name=label)
    editor.click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(text)


@pytest.fixture(scope="module")
def server(noxu_module: Noxu) -> Noxu:
    """With the kind Widget."""
    noxu_module.apply(WIDGETS)
    return noxu_module


@pytest.fixture(scope="module")
def api(server: Noxu) -> Iterator[ApiClient]:
    client = ApiClient(endpoint_from_kubeconfig(server.kubeconfig))
    yield client
    client.close()


@pytest.fixture(scope="module")
def browser(server: Noxu, api: ApiClient) -> Iterator[Browser]:
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(
    server: Noxu, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """Opens the console at an address such as `#/kinds`. What the browser complains about fails the test."""
    contexts, complaints = [], []

    def opened(address: str = "", *, token: bool = False, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        if token:
            page.goto(f"{server.url}/_noxu/#token={server._runner.server.control.token}")
            page.get_by_text("Live").wait_for()
        page.goto(f"{server.url}/_noxu/{address}")
        return page

    opened.complaints = complaints  # type: ignore[attr-defined]
    yield opened
    folder = Path(os.environ.get("NOXU_ARTEFACTS", tmp_path))
    for number, context in enumerate(contexts):
        for page in context.pages:
            page.screenshot(path=folder / f"{request.node.name}-{number}.png")
        context.close()
    assert complaints == []
