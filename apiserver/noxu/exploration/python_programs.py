"""Controllers that are Python functions, as commands: each life of one is a process of the same interpreter, with the same path.

    "package.module:main"        a function, which is called without arguments; one that is async runs in asyncio.run
    package.module.main          the same as an object; its module may be one that only its file names, as tests are
    package.module               a module with handlers of kopf: kopf run

A process of its own can be killed between two writes, as a pod can. So a function that a module does not have is refused: a
closure has no state in another process.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from noxu.exploration.settings import SettingsError

PythonController: TypeAlias = str | Callable[[], Any] | ModuleType | Sequence[str | os.PathLike[str]]
"""Words of a command, or what is described above."""
_CALL: Final = """
import asyncio, importlib, importlib.util, inspect, sys
_, name, file, function = sys.argv
if file:
    spec = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
else:
    module = importlib.import_module(name)
sys.argv = [function]
found = module
for part in function.split("."):
    found = getattr(found, part)
result = found()
if inspect.iscoroutine(result):
    asyncio.run(result)
"""
_KOPF: Final = ("-m", "kopf", "run", "--all-namespaces", "--standalone")


class PythonCommand(NamedTuple):
    """The words of a command, and what it needs of the environment."""

    words: tuple[str, ...]
    environment: dict[str, str]


def command_of(controller: PythonController) -> PythonCommand:
    """Raises SettingsError for what cannot run in a process of its own."""
    if isinstance(controller, ModuleType):
        return _of_kopf(controller)
    if isinstance(controller, str):
        return _of_name(controller)
    if callable(controller):
        return _of_function(controller)
    words = tuple(os.fspath(word) for word in controller)
    if not words:
        raise SettingsError("controller: a command has at least one word")
    return PythonCommand(words, {})


def this_interpreter(*words: str) -> PythonCommand:
    """This interpreter, with the modules that this process can import."""
    path = os.pathsep.join(os.path.abspath(place) for place in sys.path)  # noqa: PTH100 - "" is the working directory
    return PythonCommand((sys.executable, *words), {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"})


def _of_name(name: str) -> PythonCommand:
    module, colon, function = name.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        raise SettingsError(
            f"controller: {name!r} is not 'package.module:function'; a command is a list of words, such as ['./manager']"
        )
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise SettingsError(f"controller: there is no module {module!r} in sys.path")
    return this_interpreter("-c", _CALL, module, "", function)


def _of_function(function: Callable[[], Any]) -> PythonCommand:
    if not isinstance(function, FunctionType):
        raise SettingsError(f"controller: {function!r} is no function of a module: define one with def, which calls it")
    name = function.__qualname__
    if "<" in name:  # <lambda>, <locals>
        raise SettingsError(
            f"controller: {name} cannot run in a process of its own, which has nothing of the variables around it: "
            "define a function in a module"
        )
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise SettingsError(f"controller: {name} is called without arguments, and needs {', '.join(needed)}")
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        raise SettingsError(f"controller: {name} is in no file that another process could import")
    return this_interpreter("-c", _CALL, module.__name__, "" if _is_importable(module.__name__, file) else file, name)


def _of_kopf(module: ModuleType) -> PythonCommand:
    if importlib.util.find_spec("kopf") is None:
        raise SettingsError(f"controller: {module.__name__} is a module, which kopf runs: pip install kopf")
    file = getattr(module, "__file__", None)
    if file is None:
        raise SettingsError(f"controller: the module {module.__name__} has no file, which kopf could run")
    return this_interpreter(*_KOPF, file)


def _is_importable(name: str, file: str) -> bool:
    """Whether another process with the same path imports this file by this name: not a script, nor a test of pytest."""
    places: Sequence[str] | None = None
    for number in range(1, name.count(".") + 1):
        spec = PathFinder.find_spec(name.rsplit(".", name.count(".") + 1 - number)[0], places)
        if spec is None or spec.submodule_search_locations is None:
            return False
        places = list(spec.submodule_search_locations)
    found = PathFinder.find_spec(name, places)
    return found is not None and found.origin is not None and Path(found.origin).samefile(file)
