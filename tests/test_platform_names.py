"""Names of the standard library that Windows or macOS lack are used behind a guard only.

Which names those are, typeshed says (it comes with mypy): its stubs define names under conditions such as
`if sys.platform != "win32"`. A guard is a test such as `hasattr(os, "fchmod")` around the use, or, for a module that is
absent, an import in a `try` that handles ImportError. Nothing is run: other tests simulate what a platform does
differently.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.rows import rows

mypy = pytest.importorskip("mypy", reason="package: mypy")

ROOT: Final = Path(__file__).parents[1]
STUBS: Final = Path(mypy.__file__).parent / "typeshed/stdlib"
OTHERS: Final = ("win32", "darwin")
OLDEST: Final = (3, 11)  # of the supported versions of Python
MODULES: Final = ("errno", "mmap", "os", "select", "signal", "socket", "time")
"""Those that have other names on other platforms."""
ABSENT_MODULES: Final = {
    "win32": frozenset(("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"))
}
"""Typeshed cannot say that a module is absent."""
SOURCES: Final = sorted(path for folder in ("apiserver", "storage") for path in (ROOT / folder).rglob("*.py"))
NOT_ON_WINDOWS: Final = {
    "apiserver/noxu/control/program_sleep.py": "asked by `noxu explore` about the programs that it runs, on Linux",
    "apiserver/noxu/envtest/etcd.py": "a program of `noxu envtest`, which refuses to run there",
    "apiserver/noxu/exploration/pod_mounts.py": "`noxu explore`: `check_command` refuses every command there",
    "apiserver/noxu/exploration/processes.py": "as above",
    "apiserver/noxu/exploration/run_programs.py": "as above",
    "apiserver/noxu/process/supervision.py": "`noxu run`: `check_command` refuses every command there",
    "apiserver/noxu/testing/programs.py": "`noxu.program`, as above",
}
LOOP_METHODS: Final = {"add_reader", "add_writer", "add_signal_handler", "create_unix_server", "create_unix_connection"}
"""Of event loops, without a condition in typeshed: those of Windows raise NotImplementedError, or have no Unix sockets."""
GUARDED_LOOP_METHODS: Final = {
    ("apiserver/noxu/process/signals.py", "add_reader"),  # of what os.pidfd_open returns, on Linux
    ("apiserver/noxu/process/server.py", "create_unix_server"),  # for a listener that Windows cannot have
    ("apiserver/noxu/process/signals.py", "add_signal_handler"),  # in a `try` that handles NotImplementedError
}


# -- what there is on a platform


@cache
def names_on(platform: str, module: str) -> frozenset[str]:
    """The names of a module of the standard library; none if it has no stub."""
    stub = STUBS / (module.replace(".", "/") + ".pyi")
    stub = stub if stub.exists() else STUBS / module.replace(".", "/") / "__init__.pyi"
    return frozenset(_defined(ast.parse(stub.read_text()).body, platform)) if stub.exists() else frozenset()


def _defined(statements: list[ast.stmt], platform: str) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.If(test, body, orelse):
                holds = _holds(test, platform)
                yield from _defined(body, platform) if holds is not False else ()
                yield from _defined(orelse, platform) if holds is not True else ()
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(names=[ast.alias(name="*")], module=str(module)):
                yield from names_on(platform, module)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name for each in names)
            case _:
                pass


def _holds(test: ast.expr, platform: str) -> bool | None:
    """Whether a condition of a stub holds; None if it is about something else."""
    match test:
        case ast.Compare(ast.Attribute(attr="platform"), [operator], [ast.Constant(str(value))]):
            return (platform == value) is isinstance(operator, ast.Eq)
        case ast.Compare(ast.Attribute(attr="version_info"), [operator], [ast.Tuple() as version]):
            found = ast.literal_eval(version)[:2] <= OLDEST
            return found is isinstance(operator, ast.GtE)
        case ast.BoolOp(operator, values):
            found = {_holds(each, platform) for each in values}
            deciding = isinstance(operator, ast.Or)
            return deciding if deciding in found else None if None in found else not deciding
        case ast.UnaryOp(ast.Not(), operand):
            inner = _holds(operand, platform)
            return None if inner is None else not inner
        case _:
            return None


@cache
def absent(platform: str, module: str) -> frozenset[str]:
    """The names that Linux has, and this platform lacks."""
    return names_on("linux", module) - names_on(platform, module)


# -- what the code uses


def unguarded(source: str, platform: str) -> list[str]:
    """The uses of absent names, as `line: module.name`."""
    return [f"{line}: {name}" for line, name in _unguarded(ast.parse(source), platform)]


def _unguarded(tree: ast.Module, platform: str) -> Iterator[tuple[int, str]]:
    nodes = list(ast.walk(tree))
    modules = {
        each.asname or each.name: each.name for node in nodes if isinstance(node, ast.Import) for each in node.names
    }
    lacking = ABSENT_MODULES.get(platform, frozenset())
    for node in nodes:
        match node:
            case ast.Import(names=names):
                absent_modules = [each.name for each in names if each.name in lacking]
                if absent_modules and not _handles_import_errors(tree, node):
                    yield from ((node.lineno, name) for name in absent_modules)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found = [each.name for each in names if module in lacking or each.name in absent(platform, module)]
                if found and not _handles_import_errors(tree, node):
                    yield from ((node.lineno, f"{module}.{name}") for name in found)
            case ast.Attribute(value=ast.Name(id=alias), attr=name) if (module := modules.get(alias)) not in {
                None,
                *lacking,
            }:
                assert module is not None
                if name in absent(platform, module) and not _is_tested(tree, node, f"hasattr({alias}, {name!r})"):
                    yield node.lineno, f"{module}.{name}"
            case _:
                pass


def _handles_import_errors(tree: ast.Module, node: ast.AST) -> bool:
    return any(
        isinstance(parent, ast.Try)
        and child in parent.body
        and any("ImportError" in ast.dump(each) for each in parent.handlers)
        for parent, child in _ancestors(tree, node)
    )


def _is_tested(tree: ast.Module, node: ast.AST, test: str) -> bool:
    return any(
        isinstance(parent, ast.If) and child in parent.body and ast.unparse(parent.test) == test
        for parent, child in _ancestors(tree, node)
    )


def _ancestors(tree: ast.Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each ancestor, with its child on the way."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    while (parent := parents.get(node)) is not None:
        yield parent, node
        node = parent


# -- the tests


@rows(
    ("module", "name", "lacking"),
    [
        ("os", "fchmod", {"win32"}), ("os", "getppid", set()), ("os", "pidfd_open", {"win32", "darwin"}), ("os", "fork", {"win32"}),
        ("os", "symlink", set()), ("signal", "SIGKILL", {"win32"}),
        ("signal", "SIGINT", set()), ("socket", "AF_UNIX", {"win32"}), ("select", "poll", {"win32"}),
        ("select", "epoll", {"win32", "darwin"}), ("socket", "SO_PEERCRED", {"win32", "darwin"}),
    ],
)  # fmt: skip
def test_what_platforms_lack(module: str, name: str, lacking: set[str]) -> None:
    assert {platform for platform in OTHERS if name in absent(platform, module)} == lacking


@rows(
    ("source", "expected"),
    [
        ("import os\nos.fork()", ["2: os.fork"]),
        ("import os as system\nsystem.fork()", ["2: os.fork"]),
        ("from os import fork, path", ["1: os.fork"]),
        ("import os\nif hasattr(os, 'fork'):\n    os.fork()", []),
        ("import os\nif hasattr(os, 'fork'):\n    pass\nelse:\n    os.fork()", ["5: os.fork"]),
        ("import os\nif hasattr(os, 'getuid'):\n    os.fork()", ["3: os.fork"]),
        ("import fcntl", ["1: fcntl"]),
        ("try:\n    import fcntl\nexcept ImportError:\n    pass\nelse:\n    fcntl.flock(0, fcntl.LOCK_EX)", []),
        ("try:\n    import fcntl\nexcept OSError:\n    pass", ["2: fcntl"]),
        ("import os\nos.getpid()", []),
    ],
)
def test_what_is_unguarded(source: str, expected: list[str]) -> None:
    assert unguarded(source, "win32") == expected


def parsed(matching: str) -> dict[str, ast.Module]:
    """The modules whose text matches, by their paths: to parse all of them takes seconds."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in SOURCES}
    return {path: ast.parse(text) for path, text in texts.items() if re.search(matching, text, re.MULTILINE)}


@pytest.mark.slow
@pytest.mark.parametrize("platform", OTHERS)
def test_names_that_a_platform_lacks_are_guarded(platform: str) -> None:
    modules = "|".join((*MODULES, *ABSENT_MODULES.get(platform, ())))
    trees = parsed(rf"^ *(?:import|from) (?:{modules})\b")
    found = {path: list(_unguarded(tree, platform)) for path, tree in trees.items()}
    exempt = NOT_ON_WINDOWS if platform == "win32" else {}
    assert {path: uses for path, uses in found.items() if uses and path not in exempt} == {}
    assert all(found[path] for path in exempt)


def test_methods_of_event_loops_that_windows_lacks_are_guarded() -> None:
    used = {
        (path, node.attr)
        for path, tree in parsed("|".join(LOOP_METHODS)).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in LOOP_METHODS
    }
    assert used == GUARDED_LOOP_METHODS
