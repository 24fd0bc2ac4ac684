"""`noxu snapshot`: copy stored objects at one revision into a new file, which `noxu copy` restores."""

from __future__ import annotations

import argparse

from noxu.commands import copy


def run(options: argparse.Namespace) -> int:
    """Exit status 0: everything is copied; 1: something is not."""
    return copy.run(options)
