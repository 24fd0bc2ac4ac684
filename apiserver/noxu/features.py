"""Feature gates, in the syntax of upstream's flag: `--feature-gates A=true,B=false`.

Features that upstream has locked to their default have no gate, except those that its integration tests disable (with
`--emulated-version`). Unknown gates are refused, because setting one would have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from noxu.similar_names import meant


class Features(NamedTuple):
    """The features that are enabled."""

    ratcheting: bool = True
    """KEP-4008: an update may leave fields invalid that it does not change."""
    cbor: bool = False
    """KEP-4222: requests and answers may be CBOR, and custom resources are stored as CBOR."""
    field_selectors: bool = True
    """KEP-4358: custom resources may have selectable fields."""
    watch_list_compression: bool = True
    """Watches that begin with all objects are compressed if their client accepts it."""


GATES: Final = {
    "CRDValidationRatcheting": "ratcheting",
    "CBORServingAndStorage": "cbor",
    "CustomResourceFieldSelectors": "field_selectors",
    "WatchListCompression": "watch_list_compression",
}

# strconv.ParseBool
TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse(texts: Iterable[str]) -> Features:
    """The features that flags enable; of several values of a gate, the last one counts. Raises ValueError."""
    chosen: dict[str, bool] = {}
    for text in texts:
        for part in filter(None, text.split(",")):
            gate, equals, value = (word.strip() for word in part.partition("="))
            if not equals:
                raise ValueError(f"missing bool value for {gate}")
            if gate not in GATES:
                raise ValueError(f"unrecognized feature gate: {gate} (known: {', '.join(GATES)}){meant(gate, GATES)}")
            if value not in TRUE | FALSE:
                raise ValueError(f"invalid value of {gate}={value}: must be true or false")
            chosen[GATES[gate]] = value in TRUE
    return Features(**chosen)
