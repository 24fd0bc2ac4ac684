"""Types of Python for the objects of a schema: a TypedDict for each map with known fields, as the text of a stub.

Each version of a kind has a class of its name, `WidgetV1`; those of maps in it have the names of their fields in addition,
`WidgetV1Spec`. Required fields are `Required`, fields that may be null have `| None`, enums of texts are `Literal`. Docstrings
say defaults and descriptions. A class with a field that is no name in Python is written in the functional form, which has no
docstrings.

    {size: {type: integer}, colour: {enum: [red]}}      class WidgetV1Spec(TypedDict, total=False):
                                                            size: int
                                                            colour: Literal["red"]
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable, Iterator
from typing import Final

from noxu.registry.resource import Resource
from noxu.schema.structural import MISSING, Structural
from noxu.values import Json

HEAD: Final = """from typing import Any, Literal, Required, TypedDict
"""
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_IDENTITY: Final = ("apiVersion", "kind", "metadata")


def stub(resources: Iterable[Resource]) -> str:
    """The text of a stub with the types of all resources; classes that others use come first."""
    writer = _Writer()
    for resource in resources:
        _write(writer, resource)
    return "\n\n".join([HEAD, *writer.classes])


def _write(writer: _Writer, resource: Resource) -> None:
    """Write the classes of one version of a kind."""
    version = resource.version[:1].upper() + resource.version[1:]
    schema = resource.schema or Structural(type="object")
    fields = {name: node for name, node in schema.properties.items() if name not in _IDENTITY}
    identity = [
        ("apiVersion", f"Required[Literal[{_quoted(resource.api_version)}]]", ""),
        ("kind", f"Required[Literal[{_quoted(resource.kind)}]]", ""),
        ("metadata", "Required[dict[str, Any]]", ""),
    ]
    name = writer.free(f"{resource.kind}{version}")
    described = [*identity, *writer.fields(name, fields, schema.validation.required)]
    writer.write(name, described, schema.description)


class _Writer:
    """The classes that are written so far. All names are different."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self._names: set[str] = set()

    def free(self, name: str) -> str:
        """A name that no class has yet, and which is one in Python."""
        name = "".join(character if character.isalnum() and character.isascii() else "_" for character in name)
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def fields(
        self, owner: str, nodes: dict[str, Structural], required: tuple[str, ...]
    ) -> Iterator[tuple[str, str, str]]:
        """(name, type, description) of each field."""
        for name, node in nodes.items():
            type_ = self.type(node, owner + name[:1].upper() + name[1:])
            if name in required:
                type_ = f"Required[{type_}]"
            notes = [node.description.strip()] if node.description else []
            if node.default is not MISSING:
                notes.append(f"Default: {json.dumps(node.default)}.")
            yield name, type_, "\n".join(notes)

    def type(self, node: Structural, name: str) -> str:
        """The type of a node's values. Classes for it are written."""
        return self._not_null(node, name) + (" | None" if node.nullable else "")

    def _not_null(self, node: Structural, name: str) -> str:
        texts = [value for value in node.validation.enum if isinstance(value, str)]
        if node.int_or_string:
            return "int | str"
        if node.type == "string" and texts:
            return f"Literal[{', '.join(map(_quoted, texts))}]"
        if node.type in _SCALARS:
            return _SCALARS[node.type]
        if node.type == "array":
            return f"list[{self.type(node.items, name) if node.items is not None else 'Any'}]"
        if node.properties and not node.preserve_unknown_fields:
            own = self.free(name)
            self.write(own, list(self.fields(own, node.properties, node.validation.required)), node.description)
            return own
        if node.values is not None:
            return f"dict[str, {self.type(node.values, name)}]"
        return "dict[str, Any]" if node.type == "object" else "Any"

    def write(self, name: str, fields: list[tuple[str, str, str]], description: str) -> None:
        if all(
            field.isidentifier() and not keyword.iskeyword(field) and not field.startswith("__")
            for field, _, _ in fields
        ):
            lines = [f"class {name}(TypedDict, total=False):", *_docstring(description)]
            for field, type_, notes in fields:
                lines += [f"    {field}: {type_}", *_docstring(notes)]
            self.classes.append("\n".join(lines if len(lines) > 1 else [*lines, "    pass"]) + "\n")
            return
        members = "".join(f"        {_quoted(field)}: {type_},\n" for field, type_, _ in fields)
        self.classes.append(
            f"{name} = TypedDict(\n    {_quoted(name)},\n    {{\n{members}    }},\n    total=False,\n)\n"
        )


def _quoted(text: Json) -> str:
    return json.dumps(text)


def _docstring(text: str) -> list[str]:
    """The lines of a docstring with four spaces before it; none for an empty text."""
    if not text:
        return []
    safe = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    if safe.endswith('"'):
        safe += " "
    return [f"    {line}".rstrip() for line in f'"""{safe}"""'.split("\n")]
