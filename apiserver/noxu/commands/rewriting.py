"""`noxu lint --fix --in-place`: rewrite CRDs in files, so that nothing is lost.

The difference is printed before a file is written, and the former content is kept in a file beside it. Other documents in
a file do not change by a byte, nor do CRDs without violations. A CRD that is rewritten loses its comments, except for those
at its top; the kept file has them.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.commands import findings, reports
from noxu.commands.findings import Checked
from noxu.commands.linted import Linted, print_fixed
from noxu.files import write_whole
from noxu.manifests.documents import (
    Document,
    LoadError,
    Part,
    Split,
    content,
    documents_of,
    files,
    is_list,
    looks_like_json,
    no_manifest,
)
from noxu.manifests.files import COMPRESSED
from noxu.manifests.tool_files import is_packed
from noxu.observability.logs import coloured, shown_on
from noxu.values import Json, copy

Lint = Callable[[Iterable[Document]], Mapping[int, Linted]]
"""What is found out about the CRDs among documents, by the ids of these."""
BACKUP: Final = ".bak"


class _File(NamedTuple):
    """A file: its content, decompressed; the parts of that; and the documents of each part by its index."""

    path: Path
    body: bytes
    parts: list[Part]
    documents: list[tuple[int, list[Document]]]


def rewrite(options: argparse.Namespace, split: Split, lint: Lint) -> int:
    """Show the difference that fixing makes to all files and, with `--in-place`, rewrite them. Returns the exit status."""
    status = 0
    read: list[_File] = []
    for path in options.files:
        try:
            listed = files(path, options.command)
        except LoadError as error:
            status = _failed(str(error))
            continue
        if not listed and not options.allow_empty:
            print(f"{path}: {findings.EMPTY}", file=sys.stderr)
            status = findings.UNREADABLE
        for file in listed:
            try:
                read += _read(file, split, named=file == path)
            except LoadError as error:
                status = _failed(f"{file}: {error}")
    read = list({file.path.resolve(): file for file in reversed(read)}.values())[::-1]  # one may be named twice
    linted = lint(document for file in read for _, documents in file.documents for document in documents)
    for source in read:
        try:
            status = max(status, _rewrite_file(options, source, linted))
        except OSError as error:
            status = _failed(f"{error.filename or source.path}: {error.strerror or error}")
    return status


def _failed(why: str) -> int:
    print(f"noxu: {why}", file=sys.stderr)
    return findings.UNREADABLE


def _read(path: Path, split: Split, *, named: bool) -> Iterator[_File]:
    """A file; if only its directory is `named`, not one that is no manifest. Raises LoadError."""
    body = content(path)
    parts = split(body)
    if named or not no_manifest(parts):
        yield _File(path, body, parts, list(documents_of(parts, str(path))))


def _rewrite_file(options: argparse.Namespace, file: _File, linted: Mapping[int, Linted]) -> int:
    """Fix a file. Returns the exit status. Raises OSError."""
    path, body, parts, _ = file
    checked: list[Checked] = []
    for n, documents in file.documents:
        if (fixed := _fix(options, documents, parts[n], linted, checked)) is not None:
            parts[n] = Part(_replacement(parts[n].text, fixed, json=looks_like_json(body) and len(parts) == 1))
    rewritten = b"".join(part.text for part in parts)
    if rewritten != body:
        print("".join(map(_coloured, _difference(path, body, rewritten))), end="", flush=True)
        if options.in_place and is_packed(path):
            return _failed(f"{path}: it is in an archive, which is not rewritten")
        if options.in_place:
            target = path.resolve()
            kept = _keep(target, target.read_bytes())
            written = gzip.compress(rewritten, mtime=0) if path.suffix == COMPRESSED else rewritten
            write_whole(target, written, target.stat().st_mode & 0o7777)
            print(f"{path}: rewritten; the former content is in {path.with_name(kept.name)}", file=sys.stderr)
    return findings.exit_status(checked)


def _fix(
    options: argparse.Namespace,
    documents: list[Document],
    part: Part,
    linted: Mapping[int, Linted],
    checked: list[Checked],
) -> Json:
    """The fixed value of a part of a file, None if it does not change."""
    replaced: dict[int, Json] = {}
    for document in documents:
        certain = findings.decided(options, document)
        if certain is not None:
            checked.append(certain)
            reports.print_findings([certain])
        elif (result := linted.get(id(document))) is not None:
            checked.append(result.checked)
            print_fixed(result, checked[-1])
            if result.verdict.fixed is not None:
                replaced[id(document.value)] = result.verdict.fixed
    return _replace_in(part.decoded.value, replaced) if part.decoded is not None and replaced else None


def _replace_in(value: Json, replaced: dict[int, Json]) -> Json:
    """The value with CRDs replaced: it is one, or a List of Lists of them."""
    top: list[Json] = [value]
    todo: list[tuple[list[Json], int]] = [(top, 0)]
    while todo:
        holder, n = todo.pop()
        value = holder[n]
        if id(value) in replaced:
            holder[n] = replaced[id(value)]
        elif is_list(value):
            holder[n] = {**value, "items": list(value["items"])}
            todo += [(holder[n]["items"], at) for at in range(len(value["items"]))]
    result: Json = copy(top[0])
    return result


def _replacement(text: bytes, value: Json, *, json: bool) -> bytes:
    """The text of a document that replaces `text`: with the same comments at its top, and the same end.

    >>> _replacement(b"# a CRD\\n\\nkind: x", {"kind": "y"}, json=False)
    b'# a CRD\\n\\nkind: y'
    """
    if json:
        return codec.pretty(value, sort_keys=False).rstrip(b"\n") + b"\n"
    head = _HEAD.match(text)
    end = b"\n" if text.endswith(b"\n") else b""
    return (head[0] if head else b"") + codec.to_yaml(value).rstrip(b"\n") + end


_HEAD: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")  # empty lines and comments


def _difference(path: Path, before: bytes, after: bytes) -> Iterator[str]:
    """A unified diff, as `patch` reads it."""
    old, new = (body.decode("utf-8", "replace").splitlines(keepends=True) for body in (before, after))
    for line in difflib.unified_diff(old, new, f"a/{path.as_posix()}", f"b/{path.as_posix()}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _coloured(line: str) -> str:
    """A line of a diff in the colour of what it does, on a terminal."""
    colour = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
    if not colour or not shown_on(sys.stdout):
        return line
    text = line.rstrip("\n")
    return coloured(text, colour, shown=True) + line[len(text) :]


def _keep(path: Path, body: bytes) -> Path:
    """Write the content of a file to a new file beside it. Raises OSError."""
    n = 0
    while True:
        kept = path.with_name(f"{path.name}{BACKUP}{n or ''}")
        try:
            with kept.open("xb") as file:
                file.write(body)
        except FileExistsError:
            n += 1
        else:
            kept.chmod(path.stat().st_mode & 0o7777)
            return kept
