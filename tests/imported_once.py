"""A pytest plugin: modules that a run inside of pytester imports first are imported once.

When such a run ends, pytester puts `sys.modules` back to what it was. What the next test imports is then a second module
with classes of its own, while modules that were there before may have kept objects of the first one:

    a run evaluates `Object.spec{}`          →   noxu…library.patches is imported, and its types are in a cache
    the next test converts `Object.spec{}`   →   noxu…kubernetes.patches is imported again: no ObjectValue, says `match`

So everything stays but the modules of the project that pytester made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import _pytest.pytester
import pytest

import noxu

_KEPT: Final = (sys.prefix, sys.base_prefix, str(Path(noxu.__file__).parent))
"""The folders of Python, of installed packages, and of this one."""


class _Snapshot(_pytest.pytester.SysModulesSnapshot):
    def restore(self) -> None:
        imported = dict(sys.modules)
        super().restore()
        for name, module in imported.items():
            if str(getattr(module, "__file__", None) or "").startswith(_KEPT):
                sys.modules.setdefault(name, module)


def pytest_configure(config: pytest.Config) -> None:
    _pytest.pytester.SysModulesSnapshot = _Snapshot  # type: ignore[misc]
