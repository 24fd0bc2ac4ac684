"""The licences of installed packages, as SPDX expressions.

A licence is declared by the metadata of a package: `License-Expression` (PEP 639), or an older `License` that is a valid
expression. Older metadata is ambiguous otherwise ("Apache 2.0", "BSD License"): then the licence was concluded from the
licence files. A conclusion holds for the very texts that were read: other texts have to be read again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from importlib.metadata import Distribution
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

# Package: (licence, the digest of the licence files that were read)
CONCLUDED: Final[dict[str, tuple[str, str]]] = {
    "aiosignal": ("Apache-2.0", "6fd5243e92dd7f98"),
    "aiosqlite": ("MIT", "ab0c171dc3ef8bf3"),
    "google-re2": ("BSD-3-Clause", "6040cda75d90b173"),
    "markdown-it-py": ("MIT", "da9ae30be0657451"),
    "mdurl": ("MIT", "7c605df6e28667a9"),
    "protobuf": ("BSD-3-Clause", "6e5e117324afd944"),
    "uvloop": ("MIT OR Apache-2.0", "8c275175fbefc168"),
}


class Licence(NamedTuple):
    expression: str  # SPDX
    concluded: bool  # not declared by the metadata
    files: tuple[str, ...]  # the paths of its texts inside .dist-info


def licence(name: str, package: Distribution) -> Licence:
    """The licence of an installed package. One that is unknown is a ValueError which says how to add it."""
    texts = _texts(package)
    files = tuple(texts)
    declared = _declared(package)
    if declared:
        return Licence(declared, False, files)
    digest = _digest(texts)
    expression, read = CONCLUDED.get(name, ("", ""))
    if read != digest:
        raise ValueError(
            f"{name} {package.version} declares no SPDX licence: read {', '.join(files) or 'its sources'}, "
            f"and set CONCLUDED[{name!r}] to (licence, {digest!r})"
        )
    return Licence(expression, True, files)


def _declared(package: Distribution) -> str | None:
    for field in ("License-Expression", "License"):
        for value in package.metadata.get_all(field) or ():
            with suppress(InvalidLicenseExpression):
                return canonicalize_license_expression(value)
    return None


def _texts(package: Distribution) -> dict[str, bytes]:
    """The licence files of a package: path inside .dist-info to contents, sorted.

    They are in the folder `licenses` (PEP 639); older wheels have a file LICENSE beside their metadata.
    """
    texts = {}
    for file in package.files or ():
        folder, *below = PurePosixPath(file).parts
        if folder.endswith(".dist-info") and below[:1] in (["licenses"], ["LICENSE"]):
            texts["/".join(below)] = file.read_binary()
    return dict(sorted(texts.items()))


def _digest(texts: dict[str, bytes]) -> str:
    return hashlib.sha256(b"\0".join(texts.values())).hexdigest()[:16]
