"""The controllers of workloads are those of kube-controller-manager, in the order of their names."""

from __future__ import annotations

from noxu.controllers.manager import OF_WORKLOADS
from noxu.workloads.constructors import CONTROLLERS, MAKERS


def test_each_controller_is_listed_once_and_has_a_name_of_the_manager() -> None:
    assert len(MAKERS) == len(CONTROLLERS)
    assert {*MAKERS} <= {*OF_WORKLOADS}
