"""A context in the user's own kubeconfig while a server runs (`noxu serve --merge-kubeconfig`).

The file is the one that `kubectl config set-context` changes: of $KUBECONFIG the first that exists, or else its last, and
without $KUBECONFIG ~/.kube/config. It is locked as kubectl locks it, by FILE.lock, keeps its mode, and is replaced as a
whole; a link stays one.

A cluster, a user and a context of one name are added. They have an extension that names the kubeconfig of the server:
by it a later server recognizes the entries of one that was killed, and replaces them. Others of that name are never
touched. At the end they are removed: if nothing else has changed in the meantime, the file is what it was, to the byte.

The current context is set only if there is none, as kubectl would then look for a server at localhost:8080. Another one
stays: if somebody uses a cluster, too, the start or stop of this server must not send the next command to the wrong
one.

Entries of a kubeconfig are added and removed in its text: every other byte of it stays.

An entry is added before the first one of its list, as one line in the list's own style:

    contexts:                        contexts:
    # mine                           # mine
    - name: production       →       - {"name":"noxu","context":{…}}
      context: …                     - name: production

Lists in brackets, as in JSON, get it in front, too. A file is changed only if YAML reads the expected content in the
result; otherwise there is a ValueError.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from yaml import CSafeLoader, MappingNode, Node, ScalarNode, SequenceNode
from yaml.error import Mark, YAMLError

from noxu.api import codec
from noxu.config import StartError
from noxu.files import is_in_use, write_whole
from noxu.security.kubeconfig import Access, kubeconfig
from noxu.values import Json, Object

EXTENSION: Final = "noxu.dev/server"
LOCKED_FOR: Final = 2.0  # seconds that a lock of kubectl is waited for
_NEW: Final = "apiVersion: v1\nkind: Config\n"

log = logging.getLogger("noxu")


class UsersKubeconfig(NamedTuple):
    """The file that is changed, and all that kubectl reads."""

    file: Path
    files: tuple[Path, ...]

    def check(self, name: str, own: Path) -> None:
        """Raises StartError if a name is taken by somebody else's entries, or by a server that is running.

        `own` is the kubeconfig of this server.
        """
        for file in self.files:
            value = _parsed(file, _content(file))
            for field in LISTS:
                entry = entry_named(value, field, name)
                if entry is None:
                    continue
                mark = _mark(entry, field)
                if mark is None:
                    raise StartError(
                        f"{file} has {field[:-1]} {name} already, which is not Noxu's and is not overwritten: "
                        "choose another name with --context"
                    )
                owner = Path(str(mark.get("kubeconfig")))
                if owner != own and is_in_use(owner):
                    raise StartError(
                        f"context {name} in {file} is of a server that is running: choose another name with --context"
                    )

    @contextlib.contextmanager
    def merged(self, name: str, own: Path, access: Access) -> Iterator[bool]:
        """Add the entries, and remove them at the end. Whether the context is the current one. Raises StartError."""
        try:
            with _locked(self.file):
                self.check(name, own)
                content = _content(self.file)
                before = None if content is None else _without(content, name)
                texts = [before if file == self.file else _content(file) for file in self.files]
                is_current = not any(read(text or "").get(CURRENT) for text in texts)
                after = _with(before or "", name, own, access, sets_current=is_current)
                _write(self.file, after)
            if (access.client_key or access.token) and self.file.stat().st_mode & 0o077:
                log.warning("%s, which has a credential of the server now, can be read by others: chmod 600", self.file)
        except (OSError, ValueError) as error:
            raise StartError(f"cannot add context {name} to {self.file}: {_reason(error)}") from None
        try:
            yield is_current
        finally:
            try:
                with _locked(self.file):
                    _remove(self.file, name, own, before, after)
            except (OSError, ValueError, StartError) as error:
                log.warning("context %s is not removed from %s: %s", name, self.file, _reason(error))


def users_kubeconfig(environment: Mapping[str, str], home: Path) -> UsersKubeconfig:
    """The user's kubeconfig (clientcmd's PathOptions.GetDefaultFilename)."""
    named = tuple(Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path)
    if not named:
        file = home / ".kube" / "config"
        return UsersKubeconfig(file, (file,))
    return UsersKubeconfig(next((path for path in named if path.exists()), named[-1]), named)


def _remove(file: Path, name: str, own: Path, before: str | None, after: str) -> None:
    """Remove the entries. `before` and `after`: the text without them, and with them, None if there was no file."""
    content = _content(file)
    if content == after:
        if before is None:
            file.unlink()
        else:
            _write(file, before)
    elif content is not None:
        entry = entry_named(read(content), "contexts", name)
        mark = None if entry is None else _mark(entry, "contexts")
        if mark is not None and mark.get("kubeconfig") == str(own):  # otherwise it is gone, or another server's
            _write(file, _without(content, name))


def _with(text: str, name: str, own: Path, access: Access, *, sets_current: bool) -> str:
    """The text with the entries of a server."""
    text = text if text.strip() else _NEW
    own_text: Object = kubeconfig(access)
    inside: dict[str, Object] = {
        "clusters": own_text["clusters"][0]["cluster"],
        "users": own_text["users"][0]["user"],
        "contexts": {"cluster": name, "user": name, "namespace": "default"},
    }
    mark: Object = {"kubeconfig": str(own), "current": True} if sets_current else {"kubeconfig": str(own)}
    for field in LISTS:
        entry = {**inside[field], "extensions": [{"name": EXTENSION, "extension": mark}]}
        text = with_entry(text, field, {"name": name, field[:-1]: entry})
    return with_current(text, name) if sets_current else text


def _without(text: str, name: str) -> str:
    """The text without the entries of this name that are Noxu's, nor the current context that they were made."""
    for field in LISTS:
        value = read(text)
        entry = entry_named(value, field, name)
        mark = None if entry is None else _mark(entry, field)
        if mark is None:
            continue
        text = without_entry(text, field, name)
        if mark.get("current") and value.get(CURRENT) == name:
            text = with_current(text, "")
    return text


def _mark(entry: Object, field: str) -> Object | None:
    """The extension of an entry of Noxu's; None: it is somebody else's."""
    inside: Json = entry.get(field[:-1])
    extensions = inside.get("extensions") if isinstance(inside, dict) else None
    for item in extensions if isinstance(extensions, list) else ():
        if isinstance(item, dict) and item.get("name") == EXTENSION and isinstance(item.get("extension"), dict):
            mark: Object = item["extension"]
            return mark
    return None


# -- the file ---------------------------------------------------------------------------------------------------------


def _content(file: Path) -> str | None:
    """None if there is no file. Raises StartError."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StartError(f"cannot read the kubeconfig {file}: {_reason(error)}") from None


def _parsed(file: Path, text: str | None) -> Object:
    """Raises StartError."""
    try:
        return read(text or "")
    except ValueError as error:
        raise StartError(f"the kubeconfig {file} cannot be read: {error}") from None


def _write(file: Path, text: str) -> None:
    """Replace the file that is meant, or write into it where that cannot be. Its mode and owner stay. Raises OSError."""
    file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    target = Path(os.path.realpath(file))
    status = target.stat() if target.exists() else None
    if status is not None and not status.st_mode & stat.S_IWUSR:  # kubectl could not write it, either
        raise OSError(errno.EACCES, "it is read-only")
    try:
        write_whole(target, text.encode(), stat.S_IMODE(status.st_mode) if status else 0o600)
        if status is not None:
            with contextlib.suppress(OSError):
                if hasattr(os, "chown"):
                    os.chown(target, status.st_uid, status.st_gid)
    except OSError:
        if status is None:
            raise
        target.write_bytes(text.encode())  # a file that is mounted by itself, or in a directory of others


@contextlib.contextmanager
def _locked(
    file: Path, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """As kubectl: FILE.lock exists meanwhile. Raises OSError."""
    lock = file.with_name(f"{file.name}.lock")
    lock.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    until = now() + LOCKED_FOR
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            if now() > until:
                raise OSError(0, f"{lock} exists: if no kubectl is running, remove it") from None
            sleep(0.02)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


# -- the text of a kubeconfig ------------------------------------------------------------------------------------------


LISTS: Final = ("clusters", "contexts", "users")
CURRENT: Final = "current-context"
_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_Span: TypeAlias = tuple[int, int]


def read(text: str) -> Object:
    """What a kubeconfig contains; {} for an empty file. Raises ValueError."""
    value = codec.decode_yaml(text.encode()).value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("it is not a kubeconfig")
    for field in LISTS:
        items = value.get(field)
        if items is not None and not (isinstance(items, list) and all(isinstance(item, dict) for item in items)):
            raise ValueError(f"its {field} are no list of entries")
    return value


def entry_named(value: Object, field: str, name: str) -> Object | None:
    """The entry of a list with this name."""
    return next((item for item in value.get(field) or () if item.get("name") == name), None)


def with_entry(text: str, field: str, entry: Object) -> str:
    """The text with a new entry in one of LISTS. Raises ValueError."""
    expected = read(text)
    expected[field] = [entry, *(expected.get(field) or ())]
    shape = _Shape(text)
    key, value = shape.member(field)
    written = codec.encode(entry, sort_keys=False).decode()
    if key is None:
        edited = shape.with_member(field, f"[{written}]", f"{shape.newline}- {written}")
    elif isinstance(value, ScalarNode):
        edited = shape.replaced(shape.span(value), f" [{written}]" if shape.is_empty(value) else f"[{written}]")
    elif not isinstance(value, SequenceNode):
        raise ValueError(f"its {field} are no list of entries")
    elif value.flow_style:
        at = shape.at(value.value[0].start_mark) if value.value else shape.at(value.start_mark) + 1
        edited = shape.replaced((at, at), f"{written}, " if value.value else written)
    else:
        dash = shape.dash(value.value[0])
        edited = shape.replaced((dash, dash), f"- {written}{shape.newline}{shape.indent(dash)}")
    return _checked(edited, expected)


def without_entry(text: str, field: str, name: str) -> str:
    """The text without the entry of this name. Raises ValueError."""
    expected = read(text)
    n = next((n for n, item in enumerate(expected.get(field) or ()) if item.get("name") == name), None)
    if n is None:
        return text
    del expected[field][n]
    shape = _Shape(text)
    key, value = shape.member(field)
    if key is None or not isinstance(value, SequenceNode):
        raise ValueError(f"its {field} are no list of entries")
    items = value.value
    if value.flow_style:
        begin = shape.at(items[n].start_mark)
        end = shape.at(items[n].end_mark)
        if n + 1 < len(items):
            end = shape.at(items[n + 1].start_mark)
        elif n:
            begin = shape.at(items[n - 1].end_mark)
        return _checked(shape.replaced((begin, end), ""), expected)
    dash = shape.dash(items[n])
    begin = dash - len(shape.indent(dash))
    edited = shape.replaced((begin, shape.line_end(shape.end(items[n]))), "")
    if len(items) == 1:
        colon = text.index(":", shape.at(key.end_mark)) + 1
        edited = f"{edited[:colon]} []{edited[colon:]}"
    return _checked(edited, expected)


def with_current(text: str, name: str) -> str:
    """The text with this current context. Raises ValueError."""
    expected = {**read(text), CURRENT: name}
    shape = _Shape(text)
    key, value = shape.member(CURRENT)
    written = codec.encode(name, sort_keys=False).decode()
    if key is None:
        edited = shape.with_member(CURRENT, written, f" {written}")
    elif isinstance(value, ScalarNode):
        edited = shape.replaced(shape.span(value), f" {written}" if shape.is_empty(value) else written)
    else:
        raise ValueError(f"its {CURRENT} is no text")
    return _checked(edited, expected)


def _checked(text: str, expected: Object) -> str:
    if read(text) != expected:
        raise ValueError("its YAML has a form that cannot be changed in place")
    return text


class _Shape:
    """Where the parts of a YAML text are. Offsets are in characters. Raises ValueError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._lines = [0, *(match.end() for match in _BREAK.finditer(text))]
        try:
            loader: Any = CSafeLoader(text)
            self._root: Node | None = loader.get_single_node()
        except YAMLError as error:
            raise ValueError(str(error)) from None

    def at(self, mark: Mark) -> int:
        return self._lines[mark.line] + mark.column

    def span(self, node: Node) -> _Span:
        return self.at(node.start_mark), self.at(node.end_mark)

    def is_empty(self, node: Node) -> bool:
        """Whether a value is null because there is no text: it follows its colon immediately."""
        begin, end = self.span(node)
        return begin == end

    def replaced(self, span: _Span, new: str) -> str:
        begin, end = span
        return self.text[:begin] + new + self.text[end:]

    def member(self, name: str) -> tuple[Node | None, Node | None]:
        """A key of the root and its value, None if there is none."""
        if isinstance(self._root, MappingNode):
            for key, value in self._root.value:
                if key.value == name:
                    return key, value
        return None, None

    def with_member(self, name: str, in_flow: str, in_block: str) -> str:
        """The text with a new member of the root: in braces its JSON, else `name:` followed by `in_block`."""
        root = self._root
        if isinstance(root, MappingNode) and root.flow_style:
            at = self.at(root.end_mark) - 1
            if root.value:
                at = self.end(root.value[-1][1])
            return self.replaced((at, at), f'{", " if root.value else ""}"{name}": {in_flow}')
        text = self.text
        if text and not text.endswith(("\n", "\r")):
            text += self.newline
        return f"{text}{name}:{in_block}{self.newline}"

    def dash(self, item: Node) -> int:
        """The offset of the dash before an item of a block sequence."""
        at = len(self.text[: self.at(item.start_mark)].rstrip()) - 1
        if at < 0 or self.text[at] != "-":
            raise ValueError("its YAML has a form that cannot be changed in place")
        return at

    def indent(self, at: int) -> str:
        """What precedes an offset in its line."""
        return self.text[self._line_begin(at) : at]

    def _line_begin(self, at: int) -> int:
        return max(begin for begin in self._lines if begin <= at)

    def line_end(self, at: int) -> int:
        """The offset after the line break that follows."""
        match = _BREAK.search(self.text, at)
        return match.end() if match else len(self.text)

    def end(self, node: Node) -> int:
        """Where a node ends: without the comments and empty lines that libyaml counts to blocks."""
        while isinstance(node, (MappingNode, SequenceNode)) and not node.flow_style and node.value:
            last: Json = node.value[-1]
            node = last[1] if isinstance(last, tuple) else last
        at = self.at(node.end_mark)
        return len(self.text[:at].rstrip()) if isinstance(node, ScalarNode) and node.style in ("|", ">") else at
