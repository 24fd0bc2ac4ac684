"""`--runtime-config`: which built-in group versions clients can use."""

from __future__ import annotations

import pytest

from noxu.envtest.configuration import parse

SERVED = [
    ("", "v1"),
    ("apps", "v1"),
    ("autoscaling", "v2"),
    ("autoscaling", "v1"),
    ("e.io", "v1beta1"),
    ("e.io", "v1alpha1"),
]

DISABLED = {
    "nothing": ([], []),
    "one version of a group": (["autoscaling/v1=false"], [("autoscaling", "v1")]),
    "the core group": (["v1=false"], [("", "v1")]),
    "all alpha versions": (["api/alpha=false"], [("e.io", "v1alpha1")]),
    "all beta versions": (["api/beta=false"], [("e.io", "v1beta1")]),
    "everything but one version": (["apps/v1=true", "api/all=false"], [each for each in SERVED if each != ("apps", "v1")]),
    "everything but what is stable": (["api/all=false", "api/ga"], [("e.io", "v1beta1"), ("e.io", "v1alpha1")]),
    "nothing of what is enabled": (["api/all=true", "apps/v1"], []),
    "the last value of a key": (["apps/v1=true", "apps/v1=0"], [("apps", "v1")]),
}  # fmt: skip


@pytest.mark.parametrize(("items", "disabled"), DISABLED.values(), ids=DISABLED)
def test_group_versions_are_disabled(items: list[str], disabled: list[tuple[str, str]]) -> None:
    assert parse(items, SERVED) == (frozenset(disabled), [])


def test_what_has_no_effect_is_said() -> None:
    assert parse(["batch/v2alpha1=true", "batch/v1beta1=false", "apps/v1/deployments=false"], SERVED) == (
        frozenset(),
        [
            "--runtime-config: apps/v1/deployments is not GROUP/VERSION; it has no effect",
            "--runtime-config: this server does not have batch/v2alpha1",
        ],
    )


def test_a_value_is_a_boolean() -> None:
    with pytest.raises(ValueError, match=r'^runtime-config invalid value "apps/v1=no"$'):
        parse(["apps/v1=no"], SERVED)
