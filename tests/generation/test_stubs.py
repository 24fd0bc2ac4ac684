"""Stubs: the classes of schemas, which mypy accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from noxu.generation.kinds import versions_of
from noxu.generation.stubs import stub
from noxu.values import Object
from tests.generation.test_kinds import SPEC, crd
from tests.rows import rows


def written(spec: Object) -> str:
    return stub(versions_of(crd(spec)).served.values())


@rows(
    "name, schema, line",
    [
        ("a text", {"type": "string"}, "a: str"),
        ("an enum", {"type": "string", "enum": ["x", "y"]}, 'a: Literal["x", "y"]'),
        ("null", {"type": "integer", "nullable": True}, "a: int | None"),
        ("either", {"x-kubernetes-int-or-string": True}, "a: int | str"),
        ("a list", {"type": "array", "items": {"type": "number"}}, "a: list[float]"),
        ("a map", {"type": "object", "additionalProperties": {"type": "boolean"}}, "a: dict[str, bool]"),
        ("a map with fields", {"type": "object", "properties": {"b": {"type": "string"}}}, "a: WidgetV1SpecA"),
        ("anything", {"x-kubernetes-preserve-unknown-fields": True}, "a: Any"),
        ("a default", {"type": "integer", "default": 3}, '    """Default: 3."""'),
        ("a description", {"type": "integer", "description": 'Says \\ """'}, "    \"\"\"Says \\\\ '''\"\"\""),
    ],
)  # fmt: skip
def test_the_type_of_a_field(name: str, schema: Object, line: str) -> None:
    assert line in written({"type": "object", "properties": {"a": schema}})


def test_required_fields_and_names_that_python_does_not_have() -> None:
    assert "    size: Required[int]" in written(SPEC)
    text = written({"type": "object", "properties": {"from": {"type": "string"}, "a-b": {"type": "integer"}}})
    assert '        "a-b": int,\n        "from": str,\n' in text


@pytest.mark.slow
def test_mypy_accepts_the_stub_and_what_is_typed_with_it(tmp_path: Path) -> None:
    odd: Object = {"type": "object", "properties": {"from": {"type": "string", "nullable": True}}}
    spec = {**SPEC, "properties": {**SPEC["properties"], "odd": odd, "Odd": odd}}
    (tmp_path / "widgets.pyi").write_text(written(spec))
    (tmp_path / "use.py").write_text(
        "from widgets import WidgetV1\n\n"
        'right: WidgetV1 = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": {"size": 1}}\n'
        'wrong: WidgetV1 = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": {"size": "a"}}\n'
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        "use.py",
        "widgets.pyi",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Found 1 error in 1 file (checked 2 source files)" in ran.stdout
    assert "use.py:4" in ran.stdout
