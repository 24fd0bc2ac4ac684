"""Lists the private names of other packages that the product uses: `python -m benchmarks.private_names`.

A name of another package that begins with `_` may change with each of its versions. Two uses count, each place once:

- `self._name` and `def _name` in a class, if a class of another package that it inherits from has that name;
- `other._name`, which ruff refuses (SLF001) but where a comment allows it.

Classes of the standard library do not count in the first.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import noxu
import noxu_storage

OURS: Final = (noxu, noxu_storage)
ALLOWED: Final = "noqa: " + "SLF001"


def found() -> list[tuple[str, str]]:
    """(place, name) of each private name, in order."""
    names: set[tuple[str, str]] = set()
    for module in modules():
        for cls in classes(module):
            if others := inherited(cls):
                names |= {(f"{module.__name__}.{cls.__name__}", name) for name in others & used(cls)}
        for number, line in enumerate(Path(str(module.__file__)).read_text().splitlines(), 1):
            if ALLOWED in line:
                names.add((f"{module.__name__}:{number}", line.partition("#")[0].strip()))
    return sorted(names)


def modules() -> Iterator[ModuleType]:
    for package in OURS:
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                yield importlib.import_module(module.name)


def classes(module: ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield value


def used(cls: type) -> set[str]:
    """The private names that a class defines, reads or sets on itself."""
    names = set()
    for node in walk(cls):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def inherited(cls: type) -> set[str]:
    """The private names of the classes of other packages that a class inherits from."""
    names: set[str] = set()
    for base in cls.__mro__[1:]:
        if is_foreign(base):
            slots = vars(base).get("__slots__", ())
            names |= {*vars(base), *((slots,) if isinstance(slots, str) else slots)}
            names |= {
                node.attr for node in walk(base) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            }
    return {name for name in names if is_private(name)}


def walk(cls: type) -> Iterator[ast.AST]:
    """The nodes of a class; none if its source is not in Python."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):
        return
    yield from ast.walk(ast.parse(textwrap.dedent(source)))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_foreign(cls: type) -> bool:
    package = cls.__module__.partition(".")[0]
    return package not in {each.__name__ for each in OURS} and package not in sys.stdlib_module_names


def main() -> None:
    names = found()
    for place, name in names:
        print(f"{place:60} {name}")
    print(f"{len(names)} private names of others")


if __name__ == "__main__":
    main()
