"""Templates of stages."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from noxu.values import Object
from noxu.workloads.stages.template_functions import NAMES, at
from noxu.workloads.stages.templates import GoTemplate, TemplateError
from tests.rows import rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD: Object = {
    "metadata": {"name": "web", "annotations": {"a/b": "x"}},
    "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}], "hostNetwork": True, "replicas": 3},
}


def rendered(text: str) -> str:
    places = {"NodeIPWith": lambda node: f"ip of {node}"}
    return GoTemplate(text, NAMES).render(POD, at(NOW, NOW, places))


@rows(
    "text, expected",
    [
        ("plain", "plain"),
        ("{{ .metadata.name }}", "web"),
        ("{{ .metadata.name | Quote }}", '"web"'),
        ("{{ .metadata.absent }}", "<no value>"),
        ("{{ .absent.too }}", "<no value>"),
        ("a {{- .metadata.name -}} b", "awebb"),
        ("a{{/* no */}}b", "ab"),
        ("{{ $x := .metadata.name }}{{ $x }}{{ $x | upper }}", "webWEB"),
        ("{{ $x := false }}{{ if not $x }}{{ $x = true }}{{ end }}{{ $x }}", "true"),
        ("{{ range .spec.containers }}[{{ .name }}]{{ end }}", "[a][b]"),
        ("{{ range $i, $c := .spec.containers }}{{ $i }}={{ $c.name }};{{ end }}", "0=a;1=b;"),
        ("{{ range $c := .spec.containers }}{{ $c.name }}{{ $.metadata.name }}{{ end }}", "awebbweb"),
        ("{{ range .absent }}x{{ else }}none{{ end }}", "none"),
        ('{{ range .spec.containers }}{{ if eq .name "b" }}{{ break }}{{ end }}{{ .name }}{{ end }}', "a"),
        ('{{ range .spec.containers }}{{ if eq .name "a" }}{{ continue }}{{ end }}{{ .name }}{{ end }}', "b"),
        ("{{ range $key, $value := .metadata.annotations }}{{ $key }}:{{ $value }}{{ end }}", "a/b:x"),
        ("{{ with .spec.absent }}x{{ else }}y{{ end }}", "y"),
        ("{{ with .spec.containers }}{{ index . 0 }}{{ end }}", "map[image:i name:a]"),
        ("{{ if .a }}1{{ else if .spec }}2{{ else }}3{{ end }}", "2"),
        ("{{ if .a }}1{{ else if .b }}2{{ else }}3{{ end }}", "3"),
        ("{{ if and .spec (or .a .metadata) }}yes{{ end }}", "yes"),
        ("{{ or .absent `raw` }}", "raw"),
        ('{{ index .metadata.annotations "a/b" }}', "x"),
        ("{{ (index .spec.containers 1).name }}", "b"),
        ('{{ or ( index ( or .absent dict ) "k" ) "else" }}', "else"),
        ("{{ .spec.hostNetwork }} {{ .spec.replicas }} {{ 1.5 }} {{ -2 }} {{ nil }}", "true 3 1.5 -2 <no value>"),
        ("{{ len .spec.containers }}{{ add .spec.replicas 1 }}", "24"),
        ('{{ printf "%s-%d%%" .metadata.name 5 }}', "web-5%"),
        ('{{ default "d" .spec.absent }}{{ .metadata.name | default "d" }}', "dweb"),
        ("{{ Now | Quote }}", '"2026-01-01T00:00:00Z"'),
        ("{{ NodeIPWith .metadata.name }}", "ip of web"),
        ("x:{{ YAML .metadata.annotations 1 }}", "x:\n  a/b: x\n"),
        ("{{ .metadata.annotations | toJson }}", '{"a/b":"x"}'),
        (
            "{{ range NodeConditions }}{{ .type }} {{ end }}",
            "MemoryPressure DiskPressure PIDPressure Ready NetworkUnavailable ",
        ),
        ('{{ if ne .metadata.name "}}" }}ok{{ end }}', "ok"),
    ],
)
def test_a_template_is_rendered(text: str, expected: str) -> None:
    assert rendered(text) == expected


@rows(
    "text, message",
    [
        ("{{ .a", "an action has no end"),
        ("{{ if .a }}", "{{ if }} has no end"),
        ("{{ if .a }}{{ else }}", "{{ if }} has no end"),
        ("{{ end }}", "{{ end }} ends nothing"),
        ("{{ nowhere .a }}", "function 'nowhere' is not known: there are"),
        ("{{ quot .a }}", "did you mean quote?"),
        ("{{ $x }}", "{{ $x }}: undefined variable $x"),
        ("{{ range .a }}{{ $x := 1 }}{{ end }}{{ $x }}", "undefined variable $x"),
        ('{{ template "x" }}', "template is not supported in stages"),
        ("{{ .a .b }}", "{{ .a .b }} is not understood"),
        ("{{ .a | }}", "is not understood"),
        ("{{ (.a }}", "is not understood"),
        ("{{ .a ^ }}", "is not understood from '^' on"),
        ("{{ env `HOME` }}", "function 'env' is not known"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        GoTemplate(text, NAMES)


@rows(
    "text, message",
    [
        ("{{ .metadata.name.x }}", "can't evaluate field x in web"),
        ("{{ index .spec.containers 7 }}", "list index out of range"),
        ("{{ range .metadata.name }}{{ end }}", "range can't iterate over web"),
        ("{{ div 1 0 }}", "division by zero"),
        ("{{ range until 3000000 }}aaaaaaaa{{ end }}", "it makes more than 1048576 characters"),
    ],
)
def test_what_cannot_be_rendered_is_an_error(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(message)):
        rendered(text)
