"""--feature-gates, in the syntax of upstream's flag."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from noxu.features import Features, parse_gates
from tests.rows import rows

ON, OFF = Features(ratcheting=True), Features(ratcheting=False)

FLAGS: list[tuple[list[str], Features]] = [
    ([], ON),
    ([""], ON),
    (["CRDValidationRatcheting=false"], OFF),
    (["CRDValidationRatcheting=true"], ON),
    (["CRDValidationRatcheting=F"], OFF),
    (["CRDValidationRatcheting=0"], OFF),
    ([" CRDValidationRatcheting = false ,"], OFF),
    (["CRDValidationRatcheting=false,CRDValidationRatcheting=true"], ON),
    (["CRDValidationRatcheting=true", "CRDValidationRatcheting=false"], OFF),
    (["CBORServingAndStorage=true"], Features(cbor=True)),
    (["CustomResourceFieldSelectors=false"], Features(field_selectors=False)),
    (["WatchListCompression=false"], Features(watch_list_compression=False)),
    (["CBORServingAndStorage=true,CRDValidationRatcheting=false"], Features(ratcheting=False, cbor=True)),
]


@rows(("flags", "features"), FLAGS)
def test_flags(flags: list[str], features: Features) -> None:
    assert parse_gates(flags) == features


REFUSED: list[tuple[str, str]] = [
    ("CRDValidationRatcheting", "missing bool value for CRDValidationRatcheting"),
    ("CRDValidationRatcheting=", "invalid value of CRDValidationRatcheting=: must be true or false"),
    ("CRDValidationRatcheting=off", "invalid value of CRDValidationRatcheting=off: must be true or false"),
    (
        "Other=true",
        "unrecognized feature gate: Other (known: CRDValidationRatcheting, CBORServingAndStorage, CustomResourceFieldSelectors, "
        "WatchListCompression)",
    ),
    (
        "CRDValidationRatcheting=true,Other=false",
        "unrecognized feature gate: Other (known: CRDValidationRatcheting, CBORServingAndStorage, CustomResourceFieldSelectors, "
        "WatchListCompression)",
    ),
]


@pytest.mark.parametrize(("flag", "why"), REFUSED)
@pytest.mark.parametrize("command", ["serve", "validate -f x"])
def test_invalid_flags(run: Callable[..., Any], command: str, flag: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        parse_gates([flag])
    ran = run(f"{command} --feature-gates {flag}")
    assert ran.status == 2
    assert ran.err.endswith(f"noxu {command.split()[0]}: error: argument --feature-gates: {why}\n")
