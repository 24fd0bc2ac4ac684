"""Entries of a kubeconfig are added and removed in its text: every other byte of it stays.

An entry is added before the first one of its list, as one line in the list's own style:

    contexts:                        contexts:
    # mine                           # mine
    - name: production       →       - {"name":"noxu","context":{…}}
      context: …                     - name: production

Lists in brackets, as in JSON, get it in front, too. A file is only changed if YAML reads the result as what was meant;
otherwise there is a ValueError.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from yaml import CSafeLoader, MappingNode, Node, ScalarNode, SequenceNode
from yaml.error import Mark, YAMLError

from noxu.api import codec
from noxu.values import Json, Object

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
        if items is not None and not (isinstance(items, list) and all(isinstance(each, dict) for each in items)):
            raise ValueError(f"its {field} are no list of entries")
    return value


def entry_named(value: Object, field: str, name: str) -> Object | None:
    """The entry of a list with this name."""
    return next((each for each in value.get(field) or () if each.get("name") == name), None)


def with_entry(text: str, field: str, entry: Object) -> str:
    """The text with a new entry in one of LISTS. Raises ValueError."""
    expected = read(text)
    expected[field] = [entry, *(expected.get(field) or ())]
    shape = _Shape(text)
    key, value = shape.member(field)
    written = codec.encode(entry, sort_keys=False).decode()
    if key is None:
        found = shape.with_member(field, f"[{written}]", f"{shape.newline}- {written}")
    elif isinstance(value, ScalarNode):
        found = shape.replaced(shape.span(value), f" [{written}]" if shape.is_empty(value) else f"[{written}]")
    elif not isinstance(value, SequenceNode):
        raise ValueError(f"its {field} are no list of entries")
    elif value.flow_style:
        at = shape.at(value.value[0].start_mark) if value.value else shape.at(value.start_mark) + 1
        found = shape.replaced((at, at), f"{written}, " if value.value else written)
    else:
        dash = shape.dash(value.value[0])
        found = shape.replaced((dash, dash), f"- {written}{shape.newline}{shape.indent(dash)}")
    return _checked(found, expected)


def without_entry(text: str, field: str, name: str) -> str:
    """The text without the entry of this name. Raises ValueError."""
    expected = read(text)
    n = next((n for n, each in enumerate(expected.get(field) or ()) if each.get("name") == name), None)
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
    found = shape.replaced((begin, shape.line_end(shape.end(items[n]))), "")
    if len(items) == 1:
        colon = text.index(":", shape.at(key.end_mark)) + 1
        found = f"{found[:colon]} []{found[colon:]}"
    return _checked(found, expected)


def with_current(text: str, name: str) -> str:
    """The text with this current context. Raises ValueError."""
    expected = {**read(text), CURRENT: name}
    shape = _Shape(text)
    key, value = shape.member(CURRENT)
    written = codec.encode(name, sort_keys=False).decode()
    if key is None:
        found = shape.with_member(CURRENT, written, f" {written}")
    elif isinstance(value, ScalarNode):
        found = shape.replaced(shape.span(value), f" {written}" if shape.is_empty(value) else written)
    else:
        raise ValueError(f"its {CURRENT} is no text")
    return _checked(found, expected)


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
