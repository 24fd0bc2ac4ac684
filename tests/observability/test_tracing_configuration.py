"""The file of --tracing-config-file: what it may say, and what is refused with which message."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.observability.tracing_configuration import TracingConfiguration, load, read
from tests.rows import rows

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"

READ: list[tuple[str, TracingConfiguration]] = [
    ("", TracingConfiguration()),
    ("endpoint: null", TracingConfiguration()),
    ("endpoint: localhost:4318", TracingConfiguration("http://localhost:4318/v1/traces")),
    ("endpoint: '[::1]:4318'", TracingConfiguration("http://[::1]:4318/v1/traces")),
    ("endpoint: dns:///localhost:4318", TracingConfiguration("http://localhost:4318/v1/traces")),
    ("endpoint: https://collector/", TracingConfiguration("https://collector/v1/traces")),
    ("endpoint: http://collector/otlp", TracingConfiguration("http://collector/otlp")),
    ("samplingRatePerMillion: 0", TracingConfiguration("", 0.0)),
    ("samplingRatePerMillion: 1000000", TracingConfiguration("", 1.0)),
    ("samplingRatePerMillion: 100", TracingConfiguration("", 0.0001)),
]


@rows("text, expected", READ)
def test_what_it_says(text: str, expected: TracingConfiguration) -> None:
    for version in ("v1", "v1beta1", "v1alpha1"):
        assert load((HEAD.replace("/v1", f"/{version}") + text).encode()) == expected


REFUSED: list[tuple[str, str]] = [
    ("", "is an object"),
    ("[]", "is an object"),
    ("kind: TracingConfiguration", 'no kind "TracingConfiguration" is registered for version ""'),
    ("apiVersion: v1\nkind: TracingConfiguration", 'no kind "TracingConfiguration" is registered for version "v1"'),
    (HEAD.replace("Tracing", "Other"), 'no kind "OtherConfiguration" is registered'),
    (f"{HEAD}endpiont: a", 'unknown field "endpiont"'),
    (f"{HEAD}endpoint: a\nendpoint: b", "already set"),
    (f"{HEAD}endpoint: 1", "cannot unmarshal number into Go struct field TracingConfiguration.endpoint"),
    (f"{HEAD}samplingRatePerMillion: 0.5", "samplingRatePerMillion"),
    (f"{HEAD}samplingRatePerMillion: -1", "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"),
    (f"{HEAD}samplingRatePerMillion: 1000001", "must be less than or equal to one million"),
    (f"{HEAD}endpoint: unix:///collector.sock", "unsupported scheme: unix"),
    (f"{HEAD}endpoint: localhost:port", "endpoint: Invalid value"),
    (f"{HEAD}endpoint: 'http://'", "it names no host"),
    ("{", "unable to decode tracing configuration data"),
]


@rows("text, expected", REFUSED)
def test_what_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared
        load(text.encode())
    assert expected in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(ValueError, match=r"unable to read tracing configuration from .*: no such file or directory"):
        read(missing)
    missing.write_text("[]")
    with pytest.raises(ValueError, match=f"is an object: from file {missing}"):
        read(missing)
