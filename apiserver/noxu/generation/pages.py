"""Reference pages of the kinds that CRDs define, as Markdown and as one HTML page.

A version of a kind has a table of its fields, in the order of their paths (`[*]` are the items of a list and the values of a
map): type, description, default, constraints, and rules in words. Its example was accepted by the stages of the server's
pipeline (`generation.kinds`). Descriptions and messages are text of others: both forms escape them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from random import Random
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.field import Path, child
from noxu.generation.kinds import valid_object
from noxu.generation.valid import CannotGenerate
from noxu.registry.resource import Resource, Versions
from noxu.schema.structural import MISSING, Structural, ValidationRule
from noxu.values import Json

_META: Final = ("apiVersion", "kind", "metadata")
_ATTEMPTS: Final = 3


class Sentence(NamedTuple):
    """A text, with `code` at its end, if there is some."""

    text: str
    code: str = ""


class DocumentedField(NamedTuple):
    """`about`: that it is required, its description, default, constraints and rules, a sentence each."""

    path: Path
    type: str
    about: Sequence[Sentence]


class DocumentedVersion(NamedTuple):
    """`notes` are about the version; `example` is YAML, "" if none is found, for which `why_none` has the reason."""

    name: str
    notes: Sequence[Sentence]
    fields: Sequence[DocumentedField]
    example: str
    why_none: str = ""


class DocumentedKind(NamedTuple):
    """`definition` is the name of its CRD."""

    definition: str
    kind: str
    scope: str
    versions: Sequence[DocumentedVersion]


def documented(versions: Versions) -> DocumentedKind:
    """What there is to say about a kind, its served versions in the order of its definition."""
    storage = versions.storage
    listed = [_version(resource, is_stored=resource is storage) for resource in versions.served.values()]
    scope = "Namespaced" if storage.namespaced else "Cluster"
    return DocumentedKind(str(storage.group_resource), storage.kind, scope, listed)


def _version(resource: Resource, *, is_stored: bool) -> DocumentedVersion:
    schema = resource.schema or Structural(type="object")
    notes = [Sentence(schema.description)] if schema.description else []
    if resource.deprecation_text:
        notes.append(Sentence(f"Deprecated: {resource.deprecation_text}"))
    if is_stored:
        notes.append(Sentence("Objects are stored in this version."))
    if resource.has_status:
        notes.append(Sentence("The status is a subresource: it is written by itself."))
    notes += [_rule(rule) for rule in schema.rules]
    fields = list(_fields(schema, "", left_out=_META))
    try:
        return DocumentedVersion(resource.version, notes, fields, _example(resource))
    except CannotGenerate as error:
        return DocumentedVersion(resource.version, notes, fields, "", str(error))


def _example(resource: Resource) -> str:
    """An object that is accepted: the simplest one that is found. Raises CannotGenerate."""
    for attempt in range(_ATTEMPTS):
        try:
            return codec.to_yaml(valid_object(resource, Random(f"{attempt}").randrange)).decode()  # noqa: S311 - no secret
        except CannotGenerate:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _fields(schema: Structural, path: Path, left_out: Sequence[str] = ()) -> Iterator[DocumentedField]:
    required = schema.validation.required
    for name, node in sorted(schema.properties.items()):
        if name not in left_out:
            yield from _field(node, child(path, name), is_required=name in required)
    for inner in (schema.items, schema.values):
        if inner is not None and _has_something_to_say(inner):
            yield from _field(inner, f"{path}[*]", is_required=False)


def _field(node: Structural, path: Path, *, is_required: bool) -> Iterator[DocumentedField]:
    required = [Sentence("Required.")] if is_required else []
    yield DocumentedField(path, _type(node), [*required, *_about(node)])
    yield from _fields(node, path)


def _has_something_to_say(node: Structural) -> bool:
    """Whether the items of a list have more than their type, which the list says."""
    return bool(node.properties or node.items or node.values or any(_about(node)))


def _type(node: Structural) -> str:
    if node.int_or_string:
        return "integer or string"
    if node.items is not None:
        return f"list of {_type(node.items)}"
    if node.values is not None:
        return f"map of {_type(node.values)}"
    return node.type or "anything"


# -- sentences ---------------------------------------------------------------------------------------------------------


def _about(node: Structural) -> Iterator[Sentence]:
    if node.description:
        yield Sentence(node.description)
    if node.default is not MISSING:
        yield Sentence("Default:", _json(node.default))
    if node.validation.enum:
        yield Sentence("One of", ", ".join(map(_json, node.validation.enum)))
    yield from _limits(node)
    yield from (_rule(rule) for rule in node.rules)


_NUMBERS: Final = (
    ("at least", "minimum"),
    ("at most", "maximum"),
    ("a multiple of", "multiple_of"),
    ("characters: at least", "min_length"),
    ("characters: at most", "max_length"),
    ("items: at least", "min_items"),
    ("items: at most", "max_items"),
    ("entries: at least", "min_properties"),
    ("entries: at most", "max_properties"),
)
"""How a limit begins, and the field of its number."""
_EXCLUSIVE: Final = {"minimum": "exclusive_minimum", "maximum": "exclusive_maximum"}
_MORE: Final = {"minimum": "more than", "maximum": "less than"}


def _limits(node: Structural) -> Iterator[Sentence]:
    validation = node.validation
    for words, name in _NUMBERS:
        number = getattr(validation, name)
        if number is not None:
            is_exclusive = name in _EXCLUSIVE and getattr(validation, _EXCLUSIVE[name])
            text = _MORE[name] if is_exclusive else words
            yield Sentence(text[0].upper() + text[1:], f"{number:g}")
    if validation.pattern:
        yield Sentence("Matches", validation.pattern)
    if validation.format:
        yield Sentence("Format:", validation.format)
    if validation.unique_items or node.list_type == "set":
        yield Sentence("No item is there twice.")
    if node.list_type == "map":
        yield Sentence("No two items have the same", ", ".join(node.list_map_keys))
    if node.nullable:
        yield Sentence("It may be null.")
    if node.preserve_unknown_fields:
        yield Sentence("It keeps fields that are not described here.")
    if node.embedded_resource:
        yield Sentence("It is an object of Kubernetes.")
    for words, branches in (("one", validation.any_of), ("exactly one", validation.one_of)):
        alternatives = [", ".join(branch.validation.required) for branch in branches if branch.validation.required]
        if alternatives and len(alternatives) == len(branches):
            yield Sentence(f"It has {words} of", " | ".join(alternatives))


def _rule(rule: ValidationRule) -> Sentence:
    when = "On updates" if "oldSelf" in rule.rule else "Rule"
    return Sentence(f"{when}: {rule.message}:" if rule.message else f"{when}:", " ".join(rule.rule.split()))


def _json(value: Json) -> str:
    return codec.encode_unescaped(value).decode().strip()


# -- Markdown ----------------------------------------------------------------------------------------------------------


def as_markdown(kind: DocumentedKind) -> str:
    """The page of a kind."""
    lines = [f"# {_inline(kind.kind)}", "", f"`{kind.definition}`, {kind.scope}", ""]
    for version in kind.versions:
        lines += [f"## {version.name}", ""]
        for note in version.notes:
            lines += [_markdown(note), ""]
        lines += ["| field | type | |", "|---|---|---|"]
        for field in version.fields:
            about = "<br>".join(map(_markdown, field.about))
            lines.append(f"| {code_span(field.path)} | {table_cell(field.type)} | {about} |")
        lines += ["", *_markdown_example(version)]
    return "\n".join(lines)


def _markdown_example(version: DocumentedVersion) -> list[str]:
    if version.why_none:
        return [f"No example is found: {_inline(version.why_none)}", ""]
    return ["```yaml", *version.example.splitlines(), "```", ""]


def as_index(kinds: Iterable[DocumentedKind]) -> str:
    """The page that lists those of kinds."""
    rows = [
        f"| [{kind.kind}]({kind.definition}.md) | {', '.join(each.name for each in kind.versions)} |" for kind in kinds
    ]
    return "\n".join(["# Kinds", "", "| kind | versions |", "|---|---|", *rows, ""])


def _markdown(sentence: Sentence) -> str:
    code = f" {code_span(sentence.code)}" if sentence.code else ""
    return f"{_inline(sentence.text)}{code}"


def code_span(text: str) -> str:
    """A code span of a table; its fence is longer than any run of backticks in it."""
    fence = "`" * (1 + text.count("`"))
    padding = " " if "`" in text else ""
    return f"{fence}{padding}{table_cell(text)}{padding}{fence}"


def _inline(text: str) -> str:
    """A text of others in a line: no markup of it counts."""
    line = " ".join(text.split())
    return table_cell("".join(f"\\{char}" if char in "\\`*_[]#" else char for char in escape(line, quote=False)))


def table_cell(text: str) -> str:
    """A text in a cell of a table, which has one line."""
    return text.replace("|", "\\|").replace("\n", " ")


# -- HTML --------------------------------------------------------------------------------------------------------------

_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid #8884; padding: 0.3rem 1rem 0.3rem 0; text-align: left; vertical-align: top; }
code, pre { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
pre { padding: 0.7rem; border: 1px solid #8884; overflow: auto; }
"""
_HEAD: Final = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n"""
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f"<title>Kinds</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
)


def as_page(kinds: Sequence[DocumentedKind]) -> str:
    """All kinds, with links to them. It needs no script and no other file."""
    links = [f'<li><a href="#{escape(kind.definition)}">{escape(kind.kind)}</a></li>' for kind in kinds]
    parts = [_HEAD, "<h1>Kinds</h1>", f"<ul>{''.join(links)}</ul>"]
    for kind in kinds:
        parts.append(f'<h2 id="{escape(kind.definition)}">{escape(kind.kind)}</h2>')
        parts.append(f"<p><code>{escape(kind.definition)}</code>, {kind.scope}</p>")
        parts += [part for version in kind.versions for part in _html_version(version)]
    return "\n".join([*parts, "</body>\n</html>\n"])


def _html_version(version: DocumentedVersion) -> Iterator[str]:
    yield f"<h3>{escape(version.name)}</h3>"
    yield from (f"<p>{_html(note)}</p>" for note in version.notes)
    yield "<table>\n<tr><th>field</th><th>type</th><th></th></tr>"
    for field in version.fields:
        about = "<br>".join(map(_html, field.about))
        yield f"<tr><td><code>{escape(field.path)}</code></td><td>{escape(field.type)}</td><td>{about}</td></tr>"
    yield "</table>"
    if version.why_none:
        yield f"<p>No example is found: {escape(version.why_none)}</p>"
    else:
        yield f"<pre>{escape(version.example)}</pre>"


def _html(sentence: Sentence) -> str:
    code = f" <code>{escape(sentence.code)}</code>" if sentence.code else ""
    return f"{escape(sentence.text)}{code}"
