"""Ratcheting: an unchanged value may stay invalid (KEP-4008, as upstream implements it).

A node whose correlated old value is equal has no errors, neither its own nor those of nodes below
(`noxu.schema.correlation` defines both words).
"""

from __future__ import annotations

from noxu.api.field import FieldError, Path
from noxu.schema.correlation import Correlated
from noxu.schema.structural import Structural
from noxu.schema.validation import validator
from noxu.values import Json


def validate_update(
    new: Json, old: Json, schema: Structural, *, path: Path = "", ratcheting: bool = True
) -> list[FieldError]:
    """The errors of the new value, except those of unchanged nodes if `ratcheting`.

    Ratcheting only drops errors, so a valid value is not correlated.
    """
    compiled = validator(schema)
    if not ratcheting:
        return compiled.validate(new, path=path)
    if compiled.is_valid(new):
        return []
    return compiled.validate(new, path=path, old=Correlated(new, old, schema))
