"""The users as whom the server itself writes: admission sees them."""

from __future__ import annotations

from typing import Final

from noxu.registry.access import User

APISERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
"""kube-apiserver's loopback client."""
APISERVER_MANAGER: Final = "kube-apiserver"
"""The field manager of its writes."""
CONTROLLER_MANAGER: Final = "kube-controller-manager"
"""The field manager of the controllers of kube-controller-manager."""
KUBE_CONTROLLER_MANAGER: Final = User("system:kube-controller-manager", groups=("system:authenticated",))
"""kube-controller-manager itself."""


def controller(name: str) -> User:
    """A controller of kube-controller-manager, which has a service account of its own (--use-service-account-credentials)."""
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
    return User(f"system:serviceaccount:kube-system:{name}", groups=groups)
