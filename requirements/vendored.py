"""The libraries of JavaScript in the console's page: files of the wheel, which no installer knows.

They are committed as their authors publish them on npm (`LICENCES.txt` beside them has the licences, and says what of a package
each file is). The digest is that of the file as it was compared with the package: a file that differs is another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).parents[1] / "apiserver/noxu/console/page/vendor"


class Library(NamedTuple):
    """`licence`: an SPDX expression. `sha256`: of the file, in hexadecimal digits."""

    file: str
    package: str
    version: str
    licence: str
    sha256: str
    about: str

    @property
    def purl(self) -> str:
        return f"pkg:npm/{self.package}@{self.version}"


LIBRARIES: Final = (
    Library(
        "codejar.js", "codejar", "4.3.0", "MIT",
        "faccc44189de38c2e36288749e2c4db73d7c3a4322ea3c42704388fccd82f96e",
        "CodeJar, the editor",
    ),
    Library(
        "preact.js", "htm", "3.1.1", "Apache-2.0 AND MIT",
        "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
        "htm (Apache-2.0) with Preact (MIT), as one module",
    ),
    Library(
        "prism.js", "prismjs", "1.30.0", "MIT",
        "8e4f95a46c6130a25fde0b5277ced4eb467e8ff3bf94683a26090512a48152a9",
        "Prism for YAML, JSON and differences, with a first and a last line that make a module of it",
    ),
)  # fmt: skip


def component(library: Library) -> dict[str, Any]:
    """What CycloneDX calls a component."""
    return {
        "type": "library",
        "bom-ref": library.purl,
        "name": library.package,
        "version": library.version,
        "description": library.about,
        "hashes": [{"alg": "SHA-256", "content": library.sha256}],
        "licenses": [{"expression": library.licence, "acknowledgement": "declared"}],
        "purl": library.purl,
        "properties": [{"name": "noxu:file", "value": f"noxu/console/page/vendor/{library.file}"}],
    }


def rows() -> str:
    """The rows of a table in Markdown: file, package, version, licence, digest."""
    return "".join(
        f"| `{each.file}` | {each.package} | {each.version} | {each.licence} | `{each.sha256}` |\n"
        for each in LIBRARIES
    )
