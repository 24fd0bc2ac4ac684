"""Paths of files in specs of pods: relative, without a way up, inside a volume (pkg/apis/core/validation)."""

from __future__ import annotations

from noxu.api import field
from noxu.api.field import Path
from noxu.kinds.checks import Errors


def no_backsteps(given: str, path: Path) -> Errors:
    """No element is `..`."""
    if ".." in given and ".." in given.split("/"):
        yield field.invalid(path, given, "must not contain '..'")


def descending(given: str, path: Path) -> Errors:
    """Relative, and below the directory where it begins."""
    if given.startswith("/"):
        yield field.invalid(path, given, "must be a relative path")
    yield from no_backsteps(given, path)


def not_reserved(given: str, path: Path) -> Errors:
    """Descending, and not with the prefix of the files of atomic updates."""
    yield from descending(given, path)
    if given.startswith("..") and not given.startswith("../"):
        yield field.invalid(path, given, "must not start with '..'")
