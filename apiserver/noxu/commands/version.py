"""`noxu version`: print what is installed, for people and for reports of bugs."""

from __future__ import annotations

import argparse
import json
import platform

from noxu.config import KUBERNETES_VERSION, own_version


def run(options: argparse.Namespace) -> int:
    """Exit status 0."""
    found = {
        "noxu": own_version(),
        "kubernetes": KUBERNETES_VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    if options.output == "json":
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(f"{name} {value}" for name, value in found.items()))
    return 0
