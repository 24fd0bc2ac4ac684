"""Prints how much there is to read, and how far apart it stands: `python -m benchmarks.shape`.

    measure                                        now    bound
    product files                                  512      512
    files, POST                                     55       55

Each measure is a number that a reader of the code pays for; `MEASURES` says what it counts. `BOUNDS` has the figures of
today, which may not get worse: tests/benchmarks/test_shape.py fails if one does. Whoever improves one sets its bound to
what this command prints. Classes and functions are found by their names in the whole product, wherever they move.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import hops, private_names

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (ROOT / "apiserver", ROOT / "storage")
PACKAGES: Final = ("noxu", "noxu_storage")
SHORT: Final = 40  # lines; a shorter file needs a reason

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """A file of the product. `path` is relative to its folder, such as noxu/registry/write.py; `nodes` are all of them."""

    path: str
    text: str
    nodes: tuple[ast.AST, ...]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))


def read() -> list[Module]:
    """The modules of the product."""
    modules = []
    for folder in FOLDERS:
        for file in sorted(folder.rglob("*.py")):
            text = file.read_text()
            modules.append(Module(str(file.relative_to(folder)), text, tuple(ast.walk(ast.parse(text)))))
    return modules


def links(modules: Sequence[Module]) -> int:  # noqa: ARG001 - a measure
    return sum(path.is_symlink() for folder in FOLDERS for path in folder.rglob("*"))


def foreign_names(modules: Sequence[Module]) -> int:  # noqa: ARG001 - a measure
    return len(private_names.found())


def short_files(modules: Sequence[Module]) -> int:
    """Empty files do not count."""
    return sum(0 < module.lines < SHORT for module in modules)


def late_imports(modules: Sequence[Module]) -> int:
    """Imports of the product's own modules in functions."""
    return sum(
        isinstance(node, ast.Import | ast.ImportFrom) and is_own(node)
        for module in modules
        for function in module.functions
        for node in statements(function)
    )


def statements(function: Function) -> Iterator[ast.stmt]:
    """All statements of a function, but not those of the functions in it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Function | ast.expr):
            waiting.extend(ast.iter_child_nodes(node))


def is_own(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(name.partition(".")[0] in PACKAGES for name in names)


def shared_names(modules: Sequence[Module]) -> int:
    """Names that several public classes have."""
    names = Counter(cls.name for module in modules for cls in module.classes if not cls.name.startswith("_"))
    return sum(times > 1 for times in names.values())


def fields(modules: Sequence[Module], name: str) -> list[ast.AnnAssign]:
    """The annotated fields of the class of that name. Raises ValueError unless there is one."""
    [found] = [cls for module in modules for cls in module.classes if cls.name == name]
    return [node for node in found.body if isinstance(node, ast.AnnAssign)]


def booleans(found: Iterable[ast.AnnAssign]) -> int:
    return sum(ast.unparse(field.annotation) == "bool" for field in found)


def wiring(modules: Sequence[Module]) -> Iterator[Function]:
    """What wires the product: the functions beside `assemble`, and those that call it."""
    for module in modules:
        if "assemble(" in module.text:
            is_its = any(function.name == "assemble" for function in module.functions)
            yield from (function for function in module.functions if is_its or calls(function, "assemble"))


def calls(function: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for node in ast.walk(function)
    )


def parameters(modules: Sequence[Module], name: str) -> int:
    """Of the functions of that name that wire."""
    arguments = [function.args for function in wiring(modules) if function.name == name]
    return max(len(each.posonlyargs) + len(each.args) + len(each.kwonlyargs) for each in arguments)


def length(function: Function) -> int:
    """In lines, without decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def comments(modules: Sequence[Module], room: str) -> float:
    """Lines with a comment in 100 lines with code. Docstrings are neither, nor is what is written for a tool."""
    commented = code = 0
    for module in modules:
        if not module.path.startswith(f"noxu/{room}/"):
            continue
        documentation = {
            line
            for node in module.nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type == tokenize.COMMENT:
                commented += not token.string.startswith(("# noqa", "# type:", "# fmt:"))
            elif token.string.strip():
                lines.update(range(token.start[0], token.end[0] + 1))
        code += len(lines - documentation)
    return round(100 * commented / code, 1)


Measure = Callable[[Sequence[Module]], float]

MEASURES: Final[dict[str, Measure]] = {
    "product files": len,
    "files under 40 lines": short_files,
    "product lines": lambda modules: sum(module.lines for module in modules),
    "links": links,
    "private names of other packages": foreign_names,
    "imports of own modules in functions": late_imports,
    "names that several public classes have": shared_names,
    "fields of Draft": lambda modules: len(fields(modules, "Draft")),
    "booleans of Draft": lambda modules: booleans(fields(modules, "Draft")),
    "parameters of assemble": lambda modules: parameters(modules, "assemble"),
    "lines of the longest function that wires": lambda modules: max(map(length, wiring(modules))),
    "comments per 100 lines of registry": lambda modules: comments(modules, "registry"),
    "comments per 100 lines of http": lambda modules: comments(modules, "http"),
}

MORE_IS_BETTER: Final = frozenset(name for name in MEASURES if name.startswith("comments"))

BOUNDS: Final[dict[str, float]] = {
    "product files": 811,
    "files under 40 lines": 4,
    "product lines": 165_153,
    "links": 0,
    "private names of other packages": 1,
    "imports of own modules in functions": 44,
    "names that several public classes have": 4,
    "fields of Draft": 16,
    "booleans of Draft": 1,
    "parameters of assemble": 3,
    "lines of the longest function that wires": 36,
    "comments per 100 lines of registry": 6.7,
    "comments per 100 lines of http": 7.0,
    "changes of file, POST": 77,
    "files, POST": 28,
    "files for one call only, POST": 0,
    "changes of file, PUT": 106,
    "files, PUT": 35,
    "files for one call only, PUT": 3,
    "changes of file, refused PUT": 84,
    "files, refused PUT": 35,
    "files for one call only, refused PUT": 3,
    "changes of file, GET": 21,
    "files, GET": 12,
    "files for one call only, GET": 1,
    "changes of file, LIST": 26,
    "files, LIST": 15,
    "files for one call only, LIST": 3,
}


def measure() -> dict[str, float]:
    """By its name, the figure of each measure."""
    modules = read()
    return {name: count(modules) for name, count in MEASURES.items()} | walks()


def walks() -> dict[str, float]:
    """What a request walks through, see `hops`. A PUT is refused without a resourceVersion."""
    figures: dict[str, float] = {}
    for name, walk in hops.measure().items():
        figures[f"changes of file, {name}"] = walk.changes
        figures[f"files, {name}"] = walk.files
        figures[f"files for one call only, {name}"] = walk.once
    return figures


def worse(figures: dict[str, float]) -> list[str]:
    """A line for each figure that is worse than its bound, or has none."""
    return [
        f"{name}: {figure}, and the bound is {BOUNDS.get(name)}"
        for name, figure in figures.items()
        if name not in BOUNDS or (figure < BOUNDS[name] if name in MORE_IS_BETTER else figure > BOUNDS[name])
    ]


def main() -> None:
    print(f"{'measure':44} {'now':>8} {'bound':>8}")
    for name, figure in measure().items():
        print(f"{name:44} {figure:>8} {BOUNDS.get(name, ''):>8}")


if __name__ == "__main__":
    main()
