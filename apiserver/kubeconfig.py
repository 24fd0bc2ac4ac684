"""The kubeconfig of a running server. It is written atomically: when the file exists, the server is ready."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from noxu.apiserver.values import Object


def kubeconfig(url: str) -> Object:
    """A kubeconfig for the server at `url`.

    `insecure-skip-tls-verify` has no effect over http, but the Node client refuses `http://` without it.
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
    """Whether a file was written by `write_kubeconfig`, or is empty. Raises OSError."""
    text = path.read_bytes()
    return not text or b'"current-context": "noxu"' in text


def write_kubeconfig(path: Path, url: str) -> None:
    """Write the kubeconfig as JSON, which is also YAML, readable by its owner only. Raises OSError."""
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
