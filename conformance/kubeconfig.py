"""The kubeconfig with which a client reaches the server under test: its URL, and no credentials."""

from __future__ import annotations

import json


def kubeconfig(url: str, *, insecure: bool = False) -> str:
    """The text of the file. `insecure`: clients do not verify the server's certificate."""
    cluster = {"server": url, **({"insecure-skip-tls-verify": True} if insecure else {})}
    context = {"cluster": "here", "user": "me", "namespace": "default"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {}}],
            "contexts": [{"name": "here", "context": context}],
        }
    )
