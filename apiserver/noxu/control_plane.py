"""The control plane over a store: registry, admission and controllers, wired together. `server` adds HTTP.

Reads, writes and the catalog are separate objects (`Reader`, `Writer`, `LiveCatalog`), and each part receives those that it
needs. This is the only module that has all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache as cached
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from noxu.admission import plugins
from noxu.admission.chain import Chain
from noxu.admission_plugins import DEFAULT
from noxu.authorization_modes import ALWAYS_ALLOW, RBAC
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import LeaderElection
from noxu.containment import Contained
from noxu.controllers import access_rules, first_objects, manager
from noxu.controllers.api_services import APIServiceController
from noxu.controllers.bootstrap import BootstrapController, Facts
from noxu.controllers.controller import Reconciler
from noxu.controllers.definition_approval import ApprovalController
from noxu.controllers.definition_finalizer import DefinitionFinalizer
from noxu.controllers.definitions import DefinitionController
from noxu.controllers.expiry import ExpiryController
from noxu.controllers.legacy_tokens import LegacyTokenController
from noxu.controllers.service_addresses import ServiceAddressController
from noxu.crd import types as crd
from noxu.features import Features
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry.access import Authorize
from noxu.registry.builtin import built_in_versions
from noxu.registry.cache import WatchCache
from noxu.registry.catalog import Catalog, LiveCatalog
from noxu.registry.conversion.converters import Conversions, InProcess
from noxu.registry.definition import definitions_resource
from noxu.registry.draft import Act, Draft, Environment
from noxu.registry.entry import key_of
from noxu.registry.group_priorities import AGGREGATOR
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource, Versions
from noxu.registry.separated_collections import separate
from noxu.registry.service_addresses import DEFAULT_RANGE, NODE_PORTS, Pool
from noxu.registry.writer import Writer
from noxu.security import settings
from noxu.security.authentication import Authenticators
from noxu.security.authorization import RulesOf, authorizer, rules_of
from noxu.security.escalation import guards
from noxu.security.keys import Keys
from noxu.security.rbac import Policy
from noxu.security.static_tokens import StaticTokens
from noxu.security.tokens import Tokens
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import Corrupt

if TYPE_CHECKING:
    from noxu.controllers.certificate_issuing import SigningCA
    from noxu.controllers.leader_election import Election
    from noxu.webhook.client import Caller

RESTART_DELAY: Final = 0.01  # seconds until the log is followed again after a failure; doubled up to a second


@dataclass(eq=False)
class ControlPlane:
    """All parts of a server that work on one store."""

    store: Store
    features: Features
    clock: Clock
    cache: WatchCache
    reader: Reader
    persistence: Persistence
    catalog: LiveCatalog
    conversions: Conversions
    admission: Chain
    tokens: Tokens
    static_tokens: StaticTokens
    authenticator: Authenticators
    writer: Writer
    authorize: Authorize
    """Answers what users may do."""
    controllers: list[Reconciler[Any]]
    """Those that requests depend on: they run before the first one."""
    background_controllers: list[Reconciler[Any]]
    """Those that create, finish and repair objects. In a new store they do so before the first request."""
    bootstrap: BootstrapController
    """That of them which creates the objects of every cluster."""
    election: Election | None = None
    """Elects the server that runs some of the background controllers; None: this one does."""
    log_failure: str = field(default="", init=False)
    """Why the watch cache does not follow the log; empty if it does."""

    @property
    def all_controllers(self) -> list[Reconciler[Any]]:
        return [*self.controllers, *self.background_controllers]

    async def follow_log(self) -> None:
        """Keep the watch cache up to date until the store is closed. After a failure, reset it and continue."""
        delay = RESTART_DELAY
        while True:
            with Contained("the watch cache") as contained:
                await self.cache.follow()
                return
            self.log_failure = repr(contained.error)
            self.cache.reset(self.store.revision)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)
            self.log_failure = ""

    async def store_health(self) -> str:
        """Why the store cannot be read or written; empty if it can."""
        return (await self.store.status()).fault

    async def log_health(self) -> str:
        """Why the watch cache does not follow the log; empty if it does."""
        return self.log_failure

    def inherit(self, before: ControlPlane) -> None:
        """Have the tokens and the functions that were given to the control plane of which this one is a restart."""
        self.static_tokens.add(before.static_tokens)
        self.admission.local_mutating += before.admission.local_mutating
        self.admission.local_validating += before.admission.local_validating
        self.conversions.in_process.update(before.conversions.in_process)

    def convert_in_process(self, definition: str, convert: InProcess | None) -> None:
        """Convert the objects of a definition with a function instead of its `spec.conversion` (None: no longer)."""
        self.conversions.in_process.pop(definition, None)
        if convert is not None:
            self.conversions.in_process[definition] = convert
        versions = self.catalog.current.defined.get(definition)
        if versions is not None:
            versions.converter = self.conversions.of(definition)
            self.cache.end_watches(versions.collection)


def ca_in_memory(clock: Clock) -> Callable[[], SigningCA]:
    """A CA for servers that have none, made when it is needed."""

    @cached
    def made() -> SigningCA:
        from noxu.controllers.certificate_issuing import SigningCA  # few servers need it
        from noxu.security.certificates import new_authority

        identity = new_authority(clock.now).identity
        return SigningCA(identity.certificate, identity.key)

    return made


def _served(definitions: Iterable[Object]) -> dict[str, Versions]:
    """The resources of definitions, by their names."""
    if not definitions:
        return {}
    from noxu.registry.custom import versions_of  # few servers have such definitions

    return {definition["metadata"]["name"]: versions_of(definition, since=0) for definition in definitions}


@cached
def _built_in(has_foreign: bool) -> Sequence[Versions]:
    """The resources of every server: in a process they are made once. They have no state but what is compiled for them."""
    return definitions_resource(), *built_in_versions(has_foreign=has_foreign)


@lru_cache(maxsize=4)
def _built_in_catalog(has_foreign: bool, disabled: frozenset[tuple[str, str]]) -> Catalog:
    return Catalog(_built_in(has_foreign), disabled=disabled)


def assemble(
    store: Store,
    *,
    clock: Clock = SYSTEM_CLOCK,
    identifiers: Identifiers = SYSTEM_IDENTIFIERS,
    features: Features = Features(),
    caller: Caller | None = None,
    event_ttl: float | None = None,
    controllers: Sequence[str] = (),
    facts: Facts | None = None,
    root_ca: str = "",
    signing_ca: Callable[[], SigningCA] | None = None,
    admission_plugins: Collection[str] = DEFAULT,
    foreign: Iterable[Object] = (),
    modes: Sequence[str] = (ALWAYS_ALLOW,),
    authentication: settings.Settings = settings.DEFAULT,
    disabled: frozenset[tuple[str, str]] = frozenset(),
    node_ports: range = NODE_PORTS,
    elected: LeaderElection | None = None,
    as_protobuf: bool = False,
) -> ControlPlane:
    """Wire the parts together, without running anything.

    `caller` calls webhooks; without one, admission webhooks are not called, and conversion webhooks fail. `event_ttl` is
    the number of seconds for which Events are retained after their last write (0: until they are deleted, as upstream;
    None: the default of their kind). `admission_plugins` are the admission plug-ins that run. `controllers` is the list of
    kube-controller-manager's controllers, as in `--controllers`. `facts` describe a server; without them the objects that a
    server creates about itself are missing. `root_ca` is the CA of its certificate in PEM, `signing_ca` gives the one
    that signs requests for certificates; None: one in memory. `foreign` are definitions of further kinds, which are served without being stored
    themselves. `modes` are the modes of authorization, `authentication` says how users are identified. `disabled` are group
    versions of built-in kinds that clients cannot use, `node_ports` those that Services get. `elected`: the controllers of
    kube-controller-manager run only while this server is the leader; None: always. `as_protobuf`: the store keeps built-in kinds as protobuf.
    """
    served = _served(foreign)
    for versions in served.values():
        versions.keep_encoded()
    catalog = LiveCatalog(_built_in_catalog(store.shared, disabled))
    if served:
        catalog.current = Catalog(_built_in(store.shared), served, disabled=disabled)
    cache = WatchCache(store)
    reader, persistence = (
        Reader(store, cache),
        Persistence(store, cache, as_cbor=features.cbor, as_protobuf=as_protobuf),
    )
    conversions = Conversions(caller, identifiers=identifiers)
    chain = admission_chain(catalog.current, caller, admission_plugins)
    policy = Policy()
    authorize = authorizer(modes, policy)
    tokens = Tokens(
        authentication.keys or Keys(),
        reader,
        catalog.current,
        clock,
        issuers=authentication.issuers,
        audiences=authentication.audiences,
        lookup=authentication.lookup,
        max_seconds=authentication.max_seconds,
    )
    static_tokens = StaticTokens(authentication.users, tokens.audiences)
    authenticator = Authenticators(
        [static_tokens, tokens],
        reader,
        tokens.audiences,
        certificates=authentication.certificates,
        anonymous=authentication.anonymous,
    )
    environment = Environment(
        reader,
        persistence,
        catalog,
        chain,
        clock=clock,
        identifiers=identifiers,
        reviewer=partial(_review, authenticator, rules_of(modes, policy)),
        action=_action,
        guards={
            resource_of(catalog, access_rules.GROUP, name).collection: guard for name, guard in guards(policy).items()
        },
    )
    writer = Writer(environment)
    definitions = resource_of(catalog, crd.GROUP, crd.RESOURCE)
    namespaces = resource_of(catalog, "", "namespaces")
    establishing = DefinitionController(
        reader, persistence, catalog, conversions, definitions, clock, features=features
    )
    environment.followers[definitions.collection] = establishing
    services = resource_of(catalog, "", "services")
    addresses = ServiceAddressController(
        reader, services, Pool(DEFAULT_RANGE if facts is None else facts.services, node_ports), clock
    )
    environment.allocators[services.collection] = addresses.allocate
    own: list[Reconciler[Any]] = [
        establishing,
        ApprovalController(reader, persistence, definitions, clock),
        DefinitionFinalizer(reader, writer, persistence, catalog, definitions, clock),
        addresses,
        *_expiry(reader, persistence, catalog, clock, event_ttl),
        *(_rbac(reader, writer, persistence, catalog, policy, clock) if RBAC in modes else []),
    ]
    managed = manager.make(
        controllers,
        manager.Parts(
            reader,
            writer,
            persistence,
            catalog,
            clock,
            root_ca,
            signing_ca or ca_in_memory(clock),
            tokens.issue_legacy,
        ),
    )
    legacy_tokens = LegacyTokenController(reader, writer, resource_of(catalog, "", "secrets"), clock)
    tokens.used = legacy_tokens.used
    bootstrap = BootstrapController(reader, writer, catalog, namespaces, clock, facts)
    background: list[Reconciler[Any]] = [
        bootstrap,
        legacy_tokens,
        *_api_services(reader, writer, catalog, clock, facts),
        *managed,
    ]
    return ControlPlane(
        store,
        features,
        clock,
        cache,
        reader,
        persistence,
        catalog,
        conversions,
        chain,
        tokens,
        static_tokens,
        authenticator,
        writer,
        authorize,
        own,
        background,
        bootstrap,
        _election(reader, writer, catalog, clock, identifiers, managed, elected),
    )


async def _review(authenticator: Authenticators, rules: RulesOf, draft: Draft) -> Object:
    """The status of a review. Raises ApiError."""
    from noxu.security.reviews import Reviews  # with the first review

    return await Reviews(authenticator, rules)(draft)


def _action(kind: str) -> Act:
    """What a subresource does with a body of this kind."""
    from noxu.registry.subresources import ACTIONS  # with the first such body

    return ACTIONS[kind]


def _election(
    reader: Reader,
    writer: Writer,
    catalog: LiveCatalog,
    clock: Clock,
    identifiers: Identifiers,
    controllers: Sequence[Reconciler[Any]],
    periods: LeaderElection | None,
) -> Election | None:
    if periods is None or not controllers:
        return None
    from noxu.controllers.leader_election import Election  # few servers share their store

    identity = f"{socket.gethostname()}_{identifiers.new_uid()}"  # as kube-controller-manager's
    leases = resource_of(catalog, "coordination.k8s.io", "leases")
    return Election(reader, writer, leases, clock, identity, controllers, periods)


def _rbac(
    reader: Reader, writer: Writer, persistence: Persistence, catalog: LiveCatalog, policy: Policy, clock: Clock
) -> list[Reconciler[Any]]:
    """Those of the mode RBAC: the rules are complete before the first request."""
    from noxu.controllers.bootstrap_roles import BootstrapRoleController  # only this mode needs it

    resources = {plural: resource_of(catalog, access_rules.GROUP, plural) for plural in access_rules.PLURALS}
    rules = access_rules.AccessRuleController(reader, resources, policy, clock)
    writer.environment.followers.update({resource.collection: rules for resource in resources.values()})
    return [
        rules,
        BootstrapRoleController(reader, writer, persistence, resources, clock),
    ]


def _api_services(
    reader: Reader, writer: Writer, catalog: LiveCatalog, clock: Clock, facts: Facts | None
) -> list[Reconciler[Any]]:
    if facts is None:
        return []
    return [APIServiceController(reader, writer, catalog, resource_of(catalog, AGGREGATOR, "apiservices"), clock)]


def admission_chain(catalog: Catalog, caller: Caller | None, enabled: Collection[str] = DEFAULT) -> Chain:
    """The admission plug-ins that are enabled; without a caller no webhooks."""
    chain = Chain(catalog, enabled)
    if "MutatingAdmissionPolicy" in enabled:
        chain.mutating.append(plugins.mutating_policies(catalog))
    if "MutatingAdmissionWebhook" in enabled and caller is not None:
        chain.mutating.append(plugins.mutating_webhooks(catalog, caller, chain.local_mutating))
    if "ValidatingAdmissionPolicy" in enabled:
        chain.validating.append(plugins.validating_policies(catalog))
    if "ValidatingAdmissionWebhook" in enabled and caller is not None:
        chain.validating.append(plugins.validating_webhooks(catalog, caller, chain.local_validating))
    if "ResourceQuota" in enabled:
        chain.validating.append(plugins.resource_quotas(catalog))
    return chain


def _expiry(
    reader: Reader, persistence: Persistence, catalog: LiveCatalog, clock: Clock, event_ttl: float | None
) -> list[Reconciler[Any]]:
    """One controller for each collection whose objects have a lifetime."""
    if event_ttl == 0:
        return []
    resources = [resource for resource in catalog.current.resources if resource.is_stored]
    storage = {resource.collection: resource.versions.storage for resource in resources}
    return [
        ExpiryController(reader, persistence, resource, event_ttl or resource.table.lifetime, clock)
        for resource in storage.values()
        if resource.table is not None and resource.table.lifetime
    ]


def resource_of(catalog: LiveCatalog, group: str, plural: str) -> Resource:
    """A built-in resource."""
    resource = catalog.current.find(group, "v1", plural)
    assert resource is not None
    return resource


@contextlib.asynccontextmanager
async def running(plane: ControlPlane) -> AsyncIterator[ControlPlane]:
    """Follow the log and run the controllers; at the end stop them and close the store. Raises StoreError, ApiError.

    In a new store all objects that controllers create exist before this returns. In an existing one they are checked in the
    background: reading all objects takes long, and webhooks may have to be called.
    """
    is_new = await _is_new(plane)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(plane.store.close)
        await in_background(closing, plane.follow_log(), "watch cache")
        if not is_new:
            await separate(plane.store, plane.reader, _built_in_catalog(plane.store.shared, frozenset()))
        elected = () if plane.election is None else plane.election.controllers
        own = [each for each in plane.all_controllers if each not in elected]
        if is_new:
            await first_objects.create(own, plane.persistence, plane.clock, plane.writer.environment.identifiers)
        for controller in own:
            closing.push_async_callback(controller.stop)
            if is_new or controller in plane.controllers:
                await controller.start()
            else:
                controller.start_in_background()
        if plane.election is not None:
            closing.push_async_callback(plane.election.stop)
            await plane.election.start(is_new=is_new)
        closing.push_async_callback(plane.bootstrap.withdraw)
        yield plane


async def _is_new(plane: ControlPlane) -> bool:
    """Whether nothing has created the objects of every cluster yet."""
    try:
        return await plane.store.get(key_of(resource_of(plane.catalog, "", "namespaces"), "", "default")) is None
    except Corrupt:
        return False


async def in_background(closing: contextlib.AsyncExitStack, work: Any, name: str) -> None:
    """Run a coroutine until `closing` is closed."""
    task = asyncio.create_task(work, name=name)

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    closing.push_async_callback(stop)
