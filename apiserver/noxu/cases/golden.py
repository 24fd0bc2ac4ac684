"""Write what came of a case into the place where it is expected: a golden file, or `stored` and `converted` of the case itself.

A golden file is written anew, below the comments at its beginning. Of a file of cases only the value is replaced: everything
around it stays, and comments in the value are lost. A block stays a block, `{…}` stays on its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from noxu.api import codec
from noxu.cases.case_files import GOLDEN
from noxu.cases.outcomes import CaseOutcome, FileOutcome
from noxu.files import write_whole
from noxu.values import Json


class NotWritten(ValueError):
    """The message names the file, or the line."""


class _Replacement(NamedTuple):
    start: int
    end: int
    text: str


def update(outcome: FileOutcome) -> list[Path]:
    """Write what the cases of a file have got. Returns the files that are changed. Raises NotWritten."""
    changed: dict[Path, str] = {}
    path = Path(outcome.file.document.file)
    inline: list[tuple[Sequence[str | int], Json]] = []
    for case_outcome in outcome.outcomes:
        for name, got in _got(case_outcome):
            golden = case_outcome.case.golden.get(name)
            if golden is None:
                inline.append((("cases", _number(case_outcome), "expect", name), got))
            else:
                changed[golden] = _head(golden) + codec.to_yaml(got).decode()
    if inline:
        try:
            changed[path] = replaced(path.read_text("utf-8"), inline)
        except NotWritten as error:
            raise NotWritten(f"{path}: {error}") from None
    for file, text in changed.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode(), 0o644)
        except OSError as error:
            raise NotWritten(f"{file} cannot be written: {error.strerror}") from None
    return list(changed)


def _got(outcome: CaseOutcome) -> Iterable[tuple[str, Json]]:
    return [(found.field, found.got) for found in outcome.differences if found.field in GOLDEN]


def _number(outcome: CaseOutcome) -> int:
    return int(outcome.case.path.removeprefix("cases[").removesuffix("]"))


def _head(path: Path) -> str:
    """The comments at the beginning of a file."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    count = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "".join(lines[:count])


def replaced(text: str, values: Iterable[tuple[Sequence[str | int], Json]]) -> str:
    """A YAML text with other values at some paths.

    >>> replaced("a: {b: 1}  # why\\nc: 2\\n", [(["a"], {"b": 3})])
    'a: {b: 3}  # why\\nc: 2\\n'
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    edits = [_edit(text, *_at(root, path), value) for path, value in values]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _at(node: Any, path: Sequence[str | int]) -> tuple[Any, Any]:
    """(the key of a value, the value)."""
    key = node
    for step in path:
        key, node = (node, node.value[step]) if isinstance(step, int) else _member(node, step)
    return key, node


def _member(node: Any, name: str) -> tuple[Any, Any]:
    key, value = next(pair for pair in node.value if pair[0].value == name)
    return key, value


def _edit(text: str, key: Any, node: Any, value: Json) -> _Replacement:
    """Raises NotWritten for a value that is shared: an anchor, or the alias of one that is before its key."""
    start = node.start_mark.index
    if start < key.end_mark.index or text[start] == "&":
        where = f"line {key.start_mark.line + 1}: {key.value}"
        raise NotWritten(f"{where} shares its value by an anchor: write it out, or name a file instead")
    if not _is_block(node):
        return _Replacement(start, node.end_mark.index, _on_one_line(value))
    indent = " " * node.start_mark.column
    lines = codec.to_yaml(value).decode().rstrip("\n").splitlines()
    return _Replacement(start, _end(node), f"\n{indent}".join(lines))


def _on_one_line(value: Json) -> str:
    line: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"), allow_unicode=True)
    return line.removesuffix("...\n").rstrip("\n")


def _is_block(node: Any) -> bool:
    return not isinstance(node, yaml.ScalarNode) and not node.flow_style


def _end(node: Any) -> int:
    """Where the last value in a block ends: its own mark is behind the comments that follow."""
    while _is_block(node) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    end: int = node.end_mark.index
    return end
