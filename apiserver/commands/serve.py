"""`noxu serve`: run the server until it is stopped."""

from __future__ import annotations

import argparse
import sys

from noxu.apiserver import server
from noxu.apiserver.config import DEFAULT_DATA, Config


def run(options: argparse.Namespace) -> int:
    """Exit status 0: stopped; 1: could not start."""
    config = Config(
        host=options.host,
        port=options.port,
        data=None if options.memory else options.data or DEFAULT_DATA,
        durability=options.durability,
        kubeconfig=options.kubeconfig,
        files=tuple(options.files),
        features=options.features,
        annotate_invalid=options.annotate_invalid,
        webhook_services=tuple(options.webhook_service),
        event_ttl=options.event_ttl,
    )
    try:
        server.run(config)
    except server.StartError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    return 0
