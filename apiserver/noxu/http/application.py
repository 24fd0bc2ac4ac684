"""Makes the application of a server from its control plane and its configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from noxu.config import Config
from noxu.control.running import Control
from noxu.control_plane import ControlPlane
from noxu.http import scraping
from noxu.http.app import App
from noxu.http.clients import Clients
from noxu.http.documents import Documents, openid_documents
from noxu.http.exchange import Backend, Sink
from noxu.http.filters import RequestFilter
from noxu.http.traces import Traces
from noxu.observability.health import checks_of
from noxu.registry.offload import LargeRequests
from noxu.security.audit import AuditLog

SIMULATED_METRICS: Final = "noxu.http.simulated_metrics"


def application(
    plane: ControlPlane,
    config: Config,
    clients: Clients,
    *,
    scheme: str,
    authority: str,
    own_version: Callable[[], str],
    is_stopping: Callable[[], bool],
    on_loopback: bool,
    sinks: Sequence[Sink],
    audit_log: AuditLog | None,
    observer: RequestFilter | None,
    last: Sequence[RequestFilter],
    control: Callable[[], Control],
) -> App:
    """`scheme` and `authority` are how clients reach the server. `on_loopback`: only clients of this machine do.

    `control` is that of `App`.
    """
    documents = Documents(
        lambda: plane.served_resources.current,
        authority,
        own_version,
        checks_of(plane.store_health, plane.cache.health, plane.all_controllers, is_stopping),
        plane.clock.now,
        cbor=plane.features.cbor,
        release=plane.features.release,
    )
    documents.openid = openid_documents(
        plane.tokens, f"{scheme}://{authority}", config.authentication.service_account_jwks_uri
    )
    backend = Backend(
        plane.reader,
        plane.writer,
        plane.persistence,
        plane.served_resources,
        plane.clock,
        plane.features,
        plane.tokens,
        LargeRequests(),
        plane.authorize,
        plane.commands,
    )
    app = App(
        backend,
        documents,
        own_names=[name.lower() for name in (config.host, config.external_hostname) if name],
        traces_=Traces() if on_loopback else None,
        authenticator=plane.authenticator,
        sinks=sinks,
        audit_log=audit_log,
        any_host=scheme == "https",
        limits=config.requests,
        observer=observer,
        last=last,
        clients=clients,
        control=control,
    )
    scraping.install(app, plane)
    if config.nodes is not None:
        import_module(SIMULATED_METRICS).install(app)  # few servers have nodes
    return app
