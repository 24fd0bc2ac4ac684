"""Control planes of tests: what is not said about them is as in a server without kube-controller-manager's controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, Seams
from noxu.control_plane import assemble as assemble_configured
from noxu.controllers.certificate_issuing import SigningCA
from noxu.controllers.controller import ControllerParts
from noxu_storage.store import Store


def assemble(store: Store, *, controllers: Sequence[str] = (), **settings: Any) -> ControlPlane:
    """`settings` are fields of `Config` and of `Seams`."""
    seams = {name: settings.pop(name) for name in Seams._fields if name in settings}
    config = replace(WITHOUT_CONTROLLERS, controllers=tuple(controllers), **settings)
    return assemble_configured(config, store, Seams(**seams))


def parts_of(plane: ControlPlane) -> ControllerParts:
    """For another controller of a control plane; it cannot sign."""
    return ControllerParts(
        plane.reader, plane.writer, plane.persistence, plane.served_resources, plane.clock, "", _no_authority
    )


def _no_authority() -> SigningCA:
    raise AssertionError("no certificate is signed here")
