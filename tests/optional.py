"""Requirements of tests that some machines lack: data next to the checkout, programs, packages, platform features.

A test without its requirements is skipped. The reason names what is absent: `data: ../shared/crds`, `program: kubectl`,
`package: kopf`, `platform: /proc`. At the end of the run `skip_summary` lists the reasons.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

import pytest

from noxu.apiserver.schema import patterns

SHARED: Final = Path(__file__).parents[2] / "shared"  # a folder next to the checkout


def needs_data(name: str) -> pytest.MarkDecorator:
    """Skip a test without the file or folder `name` of ../shared."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=_data(name))


def needs_program(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=_program(name))


def needs_platform(feature: str, *, present: bool) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not present, reason=_platform(feature))


needs_re2: Final = pytest.mark.skipif(not patterns.engine(), reason="package: google-re2")


def skip_without_data(name: str) -> NoReturn:
    pytest.skip(_data(name))


def skip_without_program(name: str) -> NoReturn:
    pytest.skip(_program(name))


def skip_without_platform(feature: str) -> NoReturn:
    pytest.skip(_platform(feature))


def require_package(name: str) -> None:
    """Skip the running test if a package is not installed."""
    if find_spec(name) is None:
        pytest.skip(f"package: {name}")


def _data(name: str) -> str:
    return f"data: ../shared/{name}"


def _program(name: str) -> str:
    return f"program: {name}"


def _platform(feature: str) -> str:
    return f"platform: {feature}"
