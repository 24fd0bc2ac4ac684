"""aiohttp's client is imported when it is used, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INSTALL = "import sys; from noxu.http import lazy_client; lazy_client.install()\n"
IS_LOADED = "'aiohttp.connector' in sys.modules"


def printed(program: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


USES: list[tuple[str, str, str]] = [
    ("a submodule", "import aiohttp.web_server", "False"),
    ("a submodule by its name", "from aiohttp import web_ws, web_request", "False"),
    ("the package", "import aiohttp", "False"),
    ("the modules of a server", "import noxu.process.server", "False"),
    ("a name of the client", "import aiohttp; assert aiohttp.ClientSession.__module__ == 'aiohttp.client'", "True"),
    ("an imported name", "from aiohttp import ClientError", "True"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("use", "is_loaded"), [row[1:] for row in USES], ids=[row[0] for row in USES])
def test_what_loads_the_client(use: str, is_loaded: str) -> None:
    assert printed(f"{INSTALL}{use}\nprint({IS_LOADED})") == [is_loaded]


@pytest.mark.slow
def test_the_package_is_as_always_once_it_is_loaded() -> None:
    names = "import aiohttp.web; aiohttp.ClientSession; print(sorted(name for name in vars(aiohttp) if not name.startswith('__')), aiohttp.__version__)"
    assert printed(f"{INSTALL}import aiohttp.web_ws\n{names}") == printed(f"import sys\n{names}")
    assert printed(f"{INSTALL}import aiohttp; aiohttp.ClientSession; print(type(aiohttp))") == ["<class 'module'>"]


def test_an_unknown_name_is_an_error() -> None:
    program = f"{INSTALL}import aiohttp\ntry: aiohttp.nothing\nexcept AttributeError: print('none')"
    assert printed(program) == ["none"]


def test_a_package_that_has_been_imported_stays() -> None:
    assert printed(f"import aiohttp\n{INSTALL}print(type(aiohttp), {IS_LOADED})") == ["<class 'module'> True"]


def test_a_package_of_another_shape_is_imported_as_always(tmp_path: Path) -> None:
    (tmp_path / "aiohttp.py").write_text("version = 1")
    assert printed(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{INSTALL}import aiohttp; print(type(aiohttp))"
    ) == ["<class 'module'>"]
