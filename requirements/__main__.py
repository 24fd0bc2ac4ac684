"""Regenerate what this folder contains, docs/licences.md, and the table of wheels in docs/supply-chain.md.

python -m requirements compile   # the pins, from pyproject.toml: needs uv and the package index
python -m requirements wheels    # the table of packages without wheels, from the pins: needs uv and the package index
python -m requirements document  # the SBOM and the licences, from the pins and the installed packages: offline
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, Final

from requirements.licences import licence
from requirements.pins import Pin, parse
from requirements.sbom import sbom
from requirements.vendored import rows as rows_of_libraries
from requirements.wheels import replaced, table

ROOT: Final = Path(__file__).parents[1]
RUNTIME: Final = "requirements/runtime.txt"
PAGE: Final = "docs/supply-chain.md"
UV: Final = ("uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-annotate", "--no-header")
# File: what is in it, beyond or instead of the dependencies of the project. The first file pins for all of them.
FILES: Final[dict[str, tuple[str, ...]]] = {
    "requirements/test.txt": ("pyproject.toml", "--extra", "test", "--group", "build"),
    RUNTIME: ("pyproject.toml", "--extra", "etcd", "--constraints", "requirements/test.txt"),
    "requirements/benchmarks.txt": (
        "pyproject.toml",
        "--extra",
        "benchmarks",
        "--constraints",
        "requirements/test.txt",
    ),
    "requirements/build.txt": ("--group", "build", "--constraints", "requirements/test.txt"),
    "requirements/docs.txt": ("--group", "docs", "--constraints", "requirements/test.txt"),
}


def compile_pins(options: Iterable[str]) -> None:
    """Write the pins. Pins that still satisfy pyproject.toml stay, unless an option of uv (`--upgrade`) says otherwise."""
    for file, sources in FILES.items():
        subprocess.run([*UV, *sources, *options, "--output-file", file], check=True, cwd=ROOT)


def document_wheels() -> None:
    """Write the table. The index says which files there are (a lock file as PEP 751 describes it)."""
    page = ROOT / PAGE
    command = ("uv", "pip", "compile", "--quiet", "--universal", "--no-deps", "--format", "pylock.toml", RUNTIME)
    locked = tomllib.loads(subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout)
    wheels = {
        package["name"]: [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
        for package in locked["packages"]
    }
    page.write_text(replaced(page.read_text(), table(parse((ROOT / RUNTIME).read_text()), wheels)))


def documents(project: Mapping[str, Any], pins: Iterable[Pin]) -> dict[str, str]:
    """The generated documents: path to contents. The packages have to be installed in the versions of their pins."""
    pins = sorted(pins)
    packages = {pin.name: _installed(pin) for pin in pins}
    return {
        "requirements/noxu.cdx.json": json.dumps(sbom(project, pins, packages), indent=1) + "\n",
        "docs/licences.md": _licences(pins, packages),
    }


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def _installed(pin: Pin) -> Distribution:
    package = distribution(pin.name)
    if package.version != pin.version:
        raise ValueError(f"{pin.name} {package.version} is installed, and {pin.version} is pinned")
    return package


def _licences(pins: Iterable[Pin], packages: Mapping[str, Distribution]) -> str:
    rows = []
    for pin in pins:
        expression, concluded, files = licence(pin.name, packages[pin.name])
        texts = ", ".join(f"`{file.removeprefix('licenses/')}`" for file in files)
        rows.append(f"| {pin.name} | {pin.version} | {expression}{' (*)' if concluded else ''} | {texts} |\n")
    return (
        "# Licences of the dependencies\n\n"
        "Noxu itself is licensed under Apache-2.0. `python -m requirements document` generates this page.\n\n"
        "## What is in the wheel\n\n"
        "Three libraries of JavaScript for the page of the console, as their authors publish them. Their licences are in\n"
        "`apiserver/noxu/console/page/vendor/LICENCES.txt`.\n\n"
        "| file | package of npm | version | licence | SHA-256 |\n|---|---|---|---|---|\n" + rows_of_libraries() + "\n"
        "## What is installed with it\n\n"
        "As `requirements/runtime.txt` pins it, from the metadata of the installed packages. The texts are in each package's\n"
        "`.dist-info`, mostly in the folder `licenses`.\n\n"
        "(*) concluded from the texts: the metadata has no SPDX expression.\n\n"
        "| package | version | licence | texts |\n|---|---|---|---|\n" + "".join(rows) + "\n"
        "## What only tests use\n\n"
        "The packages of `requirements/test.txt` are in no artefact. One of them, axe-playwright-python (MIT), has axe-core of\n"
        "Deque (MPL-2.0) in it, which looks for what is wrong with the console's page for a screen reader or a keyboard.\n"
    )


def main(arguments: list[str]) -> None:
    match arguments:
        case ["compile", *options]:
            compile_pins(options)
        case ["wheels"]:
            document_wheels()
        case ["document"]:
            for path, text in documents(project(), parse((ROOT / RUNTIME).read_text())).items():
                (ROOT / path).write_text(text)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
