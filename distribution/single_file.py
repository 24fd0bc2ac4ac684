"""The single file: a zip archive with Noxu and all that it depends on, which Python runs.

    python -m distribution.single_file SITE_PACKAGES TARGET

It contains compiled modules, so it is for one version of Python on one platform, which its name says. Python cannot import
compiled modules out of an archive: the first run unpacks it into the user's cache, in a folder with the name of its digest.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any, Final

BOOTSTRAP: Final = Path(__file__).with_name("bootstrap.py")
PACKAGES: Final = "site-packages/"
DESCRIPTION: Final = "noxu.json"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same files are the same archive
_LEFT_OUT: Final = ("__pycache__", "pip", "setuptools")


def build(packages: Path, target: Path) -> None:
    """Write the archive of a folder site-packages."""
    files = {
        path.relative_to(packages).as_posix(): path.read_bytes()
        for path in sorted(packages.rglob("*"))
        if path.is_file() and not any(part.split("-")[0] in _LEFT_OUT for part in path.relative_to(packages).parts)
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    description = {**platform(), "digest": digest.hexdigest()}
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "__main__.py", BOOTSTRAP.read_bytes())
            _add(archive, DESCRIPTION, json.dumps(description).encode())
            for name, content in files.items():
                _add(archive, PACKAGES + name, content)
    target.chmod(0o755)


def platform() -> dict[str, Any]:
    """What the archive runs on: this interpreter's."""
    return {"python": list(sys.version_info[:2]), "platform": sysconfig.get_platform()}


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.external_attr = 0o644 << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
