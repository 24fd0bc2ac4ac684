"""The kubeconfig of a running server, written atomically: when the file is there, the server answers."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from apiserver.api.types import Object


def kubeconfig(url: str) -> Object:
    """JSON, which is YAML to every reader.

    Over http `insecure-skip-tls-verify` means nothing, but the Node client refuses `http://` without it.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "noxu",
        "clusters": [{"name": "noxu", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "noxu", "user": {}}],
        "contexts": [{"name": "noxu", "context": {"cluster": "noxu", "user": "noxu", "namespace": "default"}}],
    }


def is_own(path: Path) -> bool:
    """Is a file one that was written here, or empty? Raises OSError."""
    text = path.read_bytes()
    return not text or b'"current-context": "noxu"' in text


def write_kubeconfig(path: Path, url: str) -> None:
    """Write it beside its place and move it there, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(kubeconfig(url), file, indent=2)
            file.write("\n")
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
