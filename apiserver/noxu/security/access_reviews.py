"""Access reviews: the question in a spec, and the status that answers it (pkg/registry/authorization/util).

Requirements of selectors that are invalid or unknown are left out, which makes the question a wider one. The status says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from noxu.api.selectors import label_selector, parse_fields, parse_labels
from noxu.registry.access import Attributes, Authorize, User
from noxu.values import Object

T = TypeVar("T")


def user_of(spec: Object) -> User:
    """The user about whom a SubjectAccessReview asks."""
    extra = tuple((name, tuple(values)) for name, values in (spec.get("extra") or {}).items())
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def review(authorize: Authorize, user: User, spec: Object) -> Object:
    """The status of a review."""
    attributes: Object = spec.get("resourceAttributes") or {}
    decision = authorize(_question(user, spec))
    notes = [decision.error, *(_note(name, attributes.get(name)) for name in _SELECTORS)]
    error = "; ".join(filter(None, notes))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status | ({"evaluationError": error} if error else {})


def _question(user: User, spec: Object) -> Attributes:
    about: Object | None = spec.get("resourceAttributes")
    if about is None:
        about = spec.get("nonResourceAttributes") or {}
        return Attributes(user, about.get("verb", ""), path=about.get("path", ""))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(user, version=about.get("version") or "*", **{name: about.get(name, "") for name in names})


def _check_raw_fields(text: str) -> None:
    parse_fields(text)


def _check_raw_labels(text: str) -> None:
    parse_labels(text)


def _check_field(requirement: Object) -> None:
    """A field can be compared with one value."""
    if requirement.get("operator") not in ("In", "NotIn") or len(requirement.get("values") or ()) != 1:
        raise ValueError


def _check_label(requirement: Object) -> None:
    label_selector({"matchExpressions": [requirement]})


_SELECTORS: Final[dict[str, tuple[Callable[[str], None], Callable[[Object], None]]]] = {
    "fieldSelector": (_check_raw_fields, _check_field),
    "labelSelector": (_check_raw_labels, _check_label),
}
"""By attribute: what checks its text, and what checks a requirement. They raise ValueError."""


def _note(name: str, selector: Object | None) -> str:
    """What the status says about a selector, "" if all of it counts."""
    if not selector:
        return ""
    check_raw, check = _SELECTORS[name]
    requirements = selector.get("requirements") or []
    invalid = sum(not _passes(check, requirement) for requirement in requirements)
    if not requirements and selector.get("rawSelector"):
        invalid = not _passes(check_raw, selector["rawSelector"])
    if not invalid:
        return ""
    how = "partially ignored" if invalid < len(requirements) else "ignored"
    return f"spec.resourceAttributes.{name} {how} due to parse error"


def _passes(check: Callable[[T], None], value: T) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True
