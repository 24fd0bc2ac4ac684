"""`noxu serve`: a server until it is told to stop."""

from __future__ import annotations

import argparse
import sys

from apiserver import server
from apiserver.config import DEFAULT_DATA, Config


def run(given: argparse.Namespace) -> int:
    """0: stopped; 1: it could not start."""
    config = Config(
        host=given.host,
        port=given.port,
        data=None if given.memory else given.data or DEFAULT_DATA,
        durability=given.durability,
        kubeconfig=given.kubeconfig,
        files=tuple(given.files),
        features=given.features,
        annotate_invalid=given.annotate_invalid,
        webhook_services=tuple(given.webhook_service),
    )
    try:
        server.run(config)
    except server.StartError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    return 0
