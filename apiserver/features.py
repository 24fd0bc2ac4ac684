"""Feature gates, given as upstream's flag gives them: `--feature-gates A=true,B=false`.

There are few: what upstream has locked to its default long ago, cannot be switched here either. A gate that is not
known is refused, for whoever sets it expects something of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class Features(NamedTuple):
    """What is switched on."""

    ratcheting: bool = True
    """KEP-4008: an update may leave invalid what it does not change."""


GATES: Final = {"CRDValidationRatcheting": "ratcheting"}

# strconv.ParseBool
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse(texts: Iterable[str]) -> Features:
    """The features after these flags, the last word counts. Raises ValueError."""
    chosen: dict[str, bool] = {}
    for text in texts:
        for part in filter(None, text.split(",")):
            gate, equals, value = (word.strip() for word in part.partition("="))
            if not equals:
                raise ValueError(f"missing bool value for {gate}")
            if gate not in GATES:
                raise ValueError(f"unrecognized feature gate: {gate} (there is: {', '.join(GATES)})")
            if value not in _TRUE | _FALSE:
                raise ValueError(f"invalid value of {gate}={value}: it is true or false")
            chosen[GATES[gate]] = value in _TRUE
    return Features(**chosen)
