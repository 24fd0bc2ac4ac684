"""A pytest plugin: documents that are shared by convention are not changed in place.

A test, or the code that it tests, could change one that a later test reads. Three kinds are looked at, and an error at the
last test of a file, or of the run, says what has changed:

- the constants of a file of tests (dicts and lists with names in capitals), after its last test
- the sets of owned fields that objects share (`noxu.apply.managed_fields`), then too: are they still what their JSON says?
- what functions without arguments have made once and hand out again (`functools.cache`), after the last test of the
  process: are they still what the function makes?

They are compared, instead of being handed out as dicts that cannot be changed: the product asks for `type(value) is dict`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import orjson
import pytest

from noxu.apply.managed_fields import RecurringSets
from noxu.registry import resource

AS_TEXT: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS  # resources are no documents
MADE: Final[deque[RecurringSets]] = deque(maxlen=1000)
"""The sets of the resources that were made last."""


class NotedSets(RecurringSets):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        MADE.append(self)


resource.RecurringSets = NotedSets  # type: ignore[attr-defined]


@pytest.fixture(scope="module", autouse=True)
def _shared_documents_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    before = constants(request.module)
    yield
    after = constants(request.module)
    changed = [name for name, text in before.items() if after.get(name, text) != text]
    assert changed == [], "constants were changed in place"
    assert changed_sets() == [], "sets of fields that objects share were changed in place"


@pytest.fixture(scope="session", autouse=True)
def _cached_documents_stay() -> Iterator[None]:
    yield
    modules = [module for name, module in [*sys.modules.items()] if name.startswith(("noxu.", "noxu_storage."))]
    changed = [name for module in modules for name in changed_results(module)]
    assert changed == [], "what functions hand out again and again was changed in place"


def constants(module: ModuleType) -> dict[str, bytes]:
    """By their names, the constants as text. What they contain that is no JSON is there as its identity."""
    texts = {}
    for name, value in vars(module).items():
        if name.isupper() and type(value) in (dict, list):
            try:
                texts[name] = orjson.dumps(value, default=id, option=AS_TEXT)
            except TypeError:  # too deep, or with keys that no JSON has
                continue
    return texts


def changed_sets() -> list[bytes]:
    """The JSON of the sets of owned fields that are not what they were read from."""
    return [text for sets in MADE for text, fields in sets.kept().items() if orjson.dumps(fields) != text]


def changed_results(module: ModuleType) -> list[str]:
    """The functions of a module that hand out a dict or list again and again, which is not what they make."""
    return [
        f"{module.__name__}.{name}"
        for name, function in vars(module).items()
        if is_cached(function) and function.__module__ == module.__name__ and not inspect.signature(function).parameters
        if type(function()) in (dict, list) and function() != function.__wrapped__()
    ]


def is_cached(value: Any) -> bool:
    """Whether it is a function with `functools.cache` that has made something."""
    return isinstance(value, functools._lru_cache_wrapper) and value.cache_info().currsize > 0
