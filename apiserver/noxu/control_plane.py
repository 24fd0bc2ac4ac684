"""The control plane over a store: registry, admission and controllers, wired together. `server` adds HTTP.

Reads, writes and the served resources are separate objects (`Reader`, `Writer`, `LiveResources`), and each part
receives those that it needs. This is the only module that has all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache as cached
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from noxu.admission import plugins
from noxu.admission.chain import Chain
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import PROTOBUF, Config, LeaderElection, StartError
from noxu.controllers import access_rules, constructors, default_objects, manager
from noxu.controllers.account_tokens import LegacyTokenController
from noxu.controllers.api_services import APIServiceController
from noxu.controllers.bootstrap import BootstrapController, Facts
from noxu.controllers.bootstrap_roles import BootstrapRoleController
from noxu.controllers.certificate_issuing import SigningCA
from noxu.controllers.controller import ControllerParts, Reconciler
from noxu.controllers.definition_finalizer import DefinitionFinalizer
from noxu.controllers.definitions import ApprovalController, DefinitionController
from noxu.controllers.expiry import ExpiryController
from noxu.controllers.leader_election import Election
from noxu.controllers.service_addresses import ServiceAddressController
from noxu.features import ALWAYS_ALLOW, DEFAULT_PLUGINS, RBAC, Features
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry import further_versions
from noxu.registry.access import Authorize
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.cache import WatchCache
from noxu.registry.conversion.converters import Conversions, InProcess
from noxu.registry.draft import Act, Draft, WriteEnvironment, Writer
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource, Versions
from noxu.registry.rewriting import separate
from noxu.registry.served_resources import LiveResources, ServedResources
from noxu.registry.service_addresses import DEFAULT_RANGE, Pool
from noxu.registry.stored_object import key_of
from noxu.registry.subresources import ACTIONS
from noxu.releases.kinds import later
from noxu.security import settings
from noxu.security.authentication import Authenticators
from noxu.security.authorization import RulesOf, authorizer, rules_of
from noxu.security.certificates import new_authority
from noxu.security.escalation import guards
from noxu.security.keys import Keys
from noxu.security.rbac import RolePolicy
from noxu.security.reviews import Reviews
from noxu.security.static_tokens import StaticTokens
from noxu.security.tokens import Tokens
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import Corrupt

if TYPE_CHECKING:
    from noxu.webhook.client import Caller
    from noxu.workloads.kubelet.commands import Commands


@dataclass(eq=False)
class ControlPlane:
    """All parts of a server that work on one store."""

    store: Store
    features: Features
    clock: Clock
    cache: WatchCache
    reader: Reader
    persistence: Persistence
    served_resources: LiveResources
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
    take_over: Callable[[], None] | None = None
    """Starts the controllers where those of a template are idle; None: they read the store."""
    commands: Commands | None = None
    """What commands in simulated pods answer; None: there are no nodes."""

    @property
    def all_controllers(self) -> list[Reconciler[Any]]:
        return [*self.controllers, *self.background_controllers]

    @contextlib.asynccontextmanager
    async def controllers_paused(self) -> AsyncIterator[None]:
        """While the context is open, no controller of this server writes. Afterwards they go on with the state that is there then.

        Those that make definitions served and rules apply have caught up before the others see that state. Raises ApiError.
        """
        controllers, followers = self.all_controllers, dict.fromkeys(self.writer.environment.followers.values())
        try:
            for controller in controllers:
                await controller.interrupt()
            yield
            for controller in controllers:
                if controller in followers:
                    controller.go_on()
            for follower in followers:
                await follower.caught_up()
        finally:
            for controller in controllers:
                controller.go_on()

    async def store_health(self) -> str:
        """Why the store cannot be read or written; empty if it can."""
        return (await self.store.status()).fault

    def inherit(self, before: ControlPlane) -> None:
        """Have the tokens, functions and rules that were given to the control plane of which this one is a restart."""
        self.static_tokens.add(before.static_tokens)
        self.admission.local_mutating += before.admission.local_mutating
        self.admission.local_validating += before.admission.local_validating
        self.conversions.in_process.update(before.conversions.in_process)
        if self.commands is not None and before.commands is not None:
            self.commands.inherit(before.commands)
        earlier = {controller.name: controller for controller in before.all_controllers}
        for controller in self.all_controllers:
            if controller.name in earlier:
                controller.inherit(earlier[controller.name])

    def convert_in_process(self, definition: str, convert: InProcess | None) -> None:
        """Convert the objects of a definition with a function instead of its `spec.conversion` (None: no longer)."""
        self.conversions.in_process.pop(definition, None)
        if convert is not None:
            self.conversions.in_process[definition] = convert
        if definition in self.served_resources.current.defined:
            versions = self.served_resources.own(definition)
            versions.converter = self.conversions.of(definition)
            self.cache.end_watches(versions.collection)


class Seams(NamedTuple):
    """What reaches a control plane from outside, besides its configuration and its store; tests replace it.

    `caller` calls webhooks; without one, admission webhooks are not called, and conversion webhooks fail. `facts` describe
    a server; without them the objects that a server creates about itself are missing. `authentication` says how users are
    identified. `root_ca` is the CA of the server's certificate in PEM, `signing_ca` gives the one that signs requests for
    certificates; None: one in memory. `foreign` are definitions of further kinds, which are served without being stored.
    """

    clock: Clock = SYSTEM_CLOCK
    identifiers: Identifiers = SYSTEM_IDENTIFIERS
    caller: Caller | None = None
    facts: Facts | None = None
    authentication: settings.Settings = settings.DEFAULT
    root_ca: str = ""
    signing_ca: Callable[[], SigningCA] | None = None
    foreign: Sequence[Object] = ()


SYSTEM: Final = Seams()
WORKLOADS: Final = "noxu.workloads.constructors"
METRICS: Final = "noxu.workloads.metrics_api"
WITHOUT_CONTROLLERS: Final = Config(controllers=(), admission_plugins=DEFAULT_PLUGINS)
"""Of a control plane that only writes and reads: no controller of kube-controller-manager runs."""


def assemble(config: Config, store: Store, seams: Seams = SYSTEM) -> ControlPlane:
    """Wire the parts together, room by room, without running anything."""
    served = _served_resources(config, store, seams)
    cache = WatchCache(store)
    reader = Reader(store, cache)
    persistence = _persistence(config, store, cache)
    conversions = Conversions(seams.caller, identifiers=seams.identifiers)
    chain = admission_chain(served.current, seams.caller, config.admission_plugins)
    access = _access(config, seams, reader, served.current)
    writer = _writer(seams, reader, persistence, served, chain, access)
    parts = ControllerParts(
        reader, writer, persistence, served, seams.clock, seams.root_ca, _signing_ca(seams), access.tokens.issue_legacy
    )
    managed, commands = _managed(config, parts)
    bootstrap = BootstrapController(parts, seams.facts)
    return ControlPlane(
        store,
        config.features,
        seams.clock,
        cache,
        reader,
        persistence,
        served,
        conversions,
        chain,
        access.tokens,
        access.static_tokens,
        access.authenticator,
        writer,
        access.authorize,
        _awaited_controllers(config, seams, parts, conversions, access.policy),
        [bootstrap, *_own_controllers(seams, parts, access.tokens), *managed],
        bootstrap,
        _election(config, seams, parts, managed),
        commands=commands,
    )


def _persistence(config: Config, store: Store, cache: WatchCache) -> Persistence:
    as_protobuf = config.etcd is not None and config.etcd.media_type == PROTOBUF
    return Persistence(store, cache, as_cbor=config.features.cbor, as_protobuf=as_protobuf)


# -- the registry -----------------------------------------------------------------------------------------------------


@cached
def _built_in(release: int, has_foreign: bool) -> Sequence[Versions]:
    """The resources of every server: in a process they are made once. They have no state but what is compiled for them."""
    return definitions_resource(), *built_in_versions(release, has_foreign=has_foreign)


@lru_cache(maxsize=4)
def _built_in_resources(release: int, has_foreign: bool, disabled: frozenset[tuple[str, ...]]) -> ServedResources:
    return ServedResources(_built_in(release, has_foreign), disabled=disabled)


def _served_resources(config: Config, store: Store, seams: Seams) -> LiveResources:
    """The built-in kinds of the release, those of foreign definitions, and the metrics of simulated nodes."""
    release = config.features.release
    disabled = config.disabled | later(release)
    served_resources = LiveResources(_built_in_resources(release, store.shared, disabled))
    built_in, served = _built_in(release, store.shared), dict[str, Versions]()
    if seams.foreign:
        from noxu.registry.custom import (
            versions_of,  # imports all that knows schemas, and few servers have such definitions
        )

        try:
            built_in, others = further_versions.with_further(built_in, seams.foreign, has_foreign=store.shared)
        except ValueError as error:
            raise StartError(f"--kinds: {error}") from None
        served = {definition["metadata"]["name"]: versions_of(definition, since=0) for definition in others}
        for versions in served.values():
            versions.keep_encoded()
    if config.nodes is not None:
        served |= import_module(METRICS).served()
    if served or seams.foreign:
        served_resources.current = ServedResources(built_in, served, disabled=disabled)
    return served_resources


def _writer(
    seams: Seams,
    reader: Reader,
    persistence: Persistence,
    served_resources: LiveResources,
    chain: Chain,
    access: _Access,
) -> Writer:
    return Writer(
        WriteEnvironment(
            reader,
            persistence,
            served_resources,
            chain,
            clock=seams.clock,
            identifiers=seams.identifiers,
            reviewer=partial(_review, access.authenticator, access.rules),
            action=_action,
            guards={
                resource_of(served_resources, access_rules.GROUP, name).collection: guard
                for name, guard in guards(access.policy).items()
            },
        )
    )


async def _review(authenticator: Authenticators, rules: RulesOf, draft: Draft) -> Object:
    """The status of a review. Raises ApiError."""
    return await Reviews(authenticator, rules)(draft)


def _action(kind: str) -> Act:
    """What a subresource does with a body of this kind."""
    return ACTIONS[kind]


def resource_of(served_resources: LiveResources, group: str, plural: str) -> Resource:
    """A built-in resource."""
    resource = served_resources.current.find(group, "v1", plural)
    assert resource is not None
    return resource


# -- security ---------------------------------------------------------------------------------------------------------


class _Access(NamedTuple):
    """Who users are, and what they may do. `policy` are the rules of RBAC, which a controller keeps up to date."""

    tokens: Tokens
    static_tokens: StaticTokens
    authenticator: Authenticators
    policy: RolePolicy
    authorize: Authorize
    rules: RulesOf


def _access(config: Config, seams: Seams, reader: Reader, served_resources: ServedResources) -> _Access:
    policy, modes, options = RolePolicy(), modes_of(config), seams.authentication
    tokens = Tokens(
        options.keys or Keys(),
        reader,
        served_resources,
        seams.clock,
        issuers=options.issuers,
        audiences=options.audiences,
        lookup=options.lookup,
        max_seconds=options.max_seconds,
    )
    static_tokens = StaticTokens(options.users, tokens.audiences)
    authenticator = Authenticators(
        [static_tokens, tokens],
        reader,
        tokens.audiences,
        certificates=options.certificates,
        anonymous=options.anonymous,
    )
    return _Access(tokens, static_tokens, authenticator, policy, authorizer(modes, policy), rules_of(modes, policy))


def modes_of(config: Config) -> Sequence[str]:
    """The modes of authorization."""
    if config.authorization_modes is not None:
        return config.authorization_modes
    return (RBAC,) if config.profile == "cluster" else (ALWAYS_ALLOW,)


def _signing_ca(seams: Seams) -> Callable[[], SigningCA]:
    """The CA that signs requests for certificates: the server's or, if it has none, one that is made when it is needed."""

    @cached
    def authority() -> SigningCA:
        identity = new_authority(seams.clock.now).identity
        return SigningCA(identity.certificate, identity.key)

    return seams.signing_ca or authority


# -- controllers ------------------------------------------------------------------------------------------------------


def controllers_of(config: Config) -> Sequence[str]:
    """The list of kube-controller-manager's controllers that run."""
    if config.controllers is not None:
        return config.controllers
    return (manager.ALL,) if config.nodes is not None else manager.PROFILES[config.profile]


def _managed(config: Config, parts: ControllerParts) -> tuple[list[Reconciler[Any]], Commands | None]:
    """Those of kube-controller-manager and what simulates nodes; what commands in pods answer. Raises StartError."""
    managed = constructors.make(controllers_of(config), parts)
    if config.nodes is None:
        return managed, None
    simulated = import_module(WORKLOADS).make(config, controllers_of(config), parts)  # few servers have nodes
    return [*managed, *simulated.controllers], simulated.commands


def _awaited_controllers(
    config: Config, seams: Seams, parts: ControllerParts, conversions: Conversions, policy: RolePolicy
) -> list[Reconciler[Any]]:
    """Those that requests depend on. Writes wait for what follows from definitions, and use the addresses of services."""
    environment = parts.writer.environment
    establishing = DefinitionController(parts, conversions, config.features)
    environment.followers[establishing.resource.collection] = establishing
    network = DEFAULT_RANGE if seams.facts is None else seams.facts.services
    addresses = ServiceAddressController(parts, Pool(network, config.node_ports, config.deterministic))
    environment.allocators[addresses.resource.collection] = addresses.allocate
    own: list[Reconciler[Any]] = [
        establishing,
        ApprovalController(parts),
        DefinitionFinalizer(parts),
        addresses,
        *_expiry(config, parts),
        *(_rbac(parts, policy) if RBAC in modes_of(config) else []),
    ]
    if config.annotate_invalid:
        own.append(_invalid_objects(parts, establishing))
    return own


def _own_controllers(seams: Seams, parts: ControllerParts, tokens: Tokens) -> list[Reconciler[Any]]:
    """Those of kube-apiserver that run in the background, besides that of the objects of every cluster."""
    legacy_tokens = LegacyTokenController(parts)
    tokens.used = legacy_tokens.used
    return [legacy_tokens] if seams.facts is None else [legacy_tokens, APIServiceController(parts)]


def _expiry(config: Config, parts: ControllerParts) -> list[Reconciler[Any]]:
    """One controller for each collection whose objects have a lifetime. etcd deletes Events itself."""
    if config.event_ttl == 0 or config.etcd is not None:
        return []
    resources = [resource for resource in parts.served_resources.current.resources if resource.is_stored]
    storage = {resource.collection: resource.versions.storage for resource in resources}
    return [
        ExpiryController(parts, resource, config.event_ttl)
        for resource in storage.values()
        if resource.table is not None and resource.table.lifetime
    ]


def _rbac(parts: ControllerParts, policy: RolePolicy) -> list[Reconciler[Any]]:
    """Those of the mode RBAC: the rules are complete before the first request."""
    rules = access_rules.AccessRuleController(parts, policy)
    followed = (rules.resource, *rules.other_resources)
    parts.writer.environment.followers.update({resource.collection: rules for resource in followed})
    return [rules, BootstrapRoleController(parts)]


def _invalid_objects(parts: ControllerParts, establishing: DefinitionController) -> Reconciler[Any]:
    from noxu.controllers.invalid_objects import InvalidObjectController  # 76 ms: it has the pipeline of writes

    return InvalidObjectController(parts, establishing)


def elected(config: Config) -> LeaderElection | None:
    """How the server that runs the controllers is elected; None: this one runs them."""
    election = config.leader_election
    return election if election.enabled or (election.enabled is None and config.etcd is not None) else None


def _election(
    config: Config, seams: Seams, parts: ControllerParts, controllers: Sequence[Reconciler[Any]]
) -> Election | None:
    periods = elected(config)
    if periods is None or not controllers:
        return None
    identity = f"{socket.gethostname()}_{seams.identifiers.new_uid()}"  # as kube-controller-manager's
    leases = parts.resource("coordination.k8s.io", "leases")
    return Election(parts.reader, parts.writer, leases, parts.clock, identity, controllers, periods)


# -- admission --------------------------------------------------------------------------------------------------------


def admission_chain(
    served_resources: ServedResources, caller: Caller | None, enabled: Collection[str] = DEFAULT_PLUGINS
) -> Chain:
    """The admission plug-ins that are enabled; without a caller no webhooks."""
    chain = Chain(served_resources, enabled)
    if "MutatingAdmissionPolicy" in enabled:
        chain.mutating.append(plugins.mutating_policies(served_resources))
    if "MutatingAdmissionWebhook" in enabled and caller is not None:
        chain.mutating.append(plugins.mutating_webhooks(served_resources, caller, chain.local_mutating))
    if "ValidatingAdmissionPolicy" in enabled:
        chain.validating.append(plugins.validating_policies(served_resources))
    if "ValidatingAdmissionWebhook" in enabled and caller is not None:
        chain.validating.append(plugins.validating_webhooks(served_resources, caller, chain.local_validating))
    if "ResourceQuota" in enabled:
        chain.validating.append(plugins.resource_quotas(served_resources))
    return chain


# -- running ----------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def running(plane: ControlPlane) -> AsyncIterator[ControlPlane]:
    """Follow the log and run the controllers; at the end stop them and close the store. Raises StoreError, ApiError.

    In a new store all objects that controllers create exist before this returns. In an existing one they are checked in the
    background: reading all objects takes long, and webhooks may have to be called.
    """
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(plane.store.close)
        await in_background(closing, plane.cache.keep_following(), "watch cache")
        if plane.take_over is not None:
            closing.push_async_callback(_stop, plane.all_controllers)
            plane.take_over()
        else:
            await _start(plane, closing)
        closing.push_async_callback(plane.bootstrap.withdraw)
        yield plane


def dismantle(plane: ControlPlane) -> None:
    """Cut the cycles among the parts of a control plane that has stopped and will not run again. Its store is in memory."""
    for controller in plane.all_controllers:
        vars(controller).clear()  # each refers to its queue, which calls it
    for collection in plane.cache.collections.values():
        collection.forget_streams()
    plane.writer.environment.followers.clear()  # controllers, which write
    vars(plane.store).clear()  # its log reads what it has begun with
    vars(plane).clear()  # what a template has left to do refers to it


async def _start(plane: ControlPlane, closing: contextlib.AsyncExitStack) -> None:
    """Start the controllers, which read the store."""
    is_new = await _is_new(plane)
    if not is_new:
        await separate(
            plane.store, plane.reader, _built_in_resources(plane.features.release, plane.store.shared, frozenset())
        )
    elected = () if plane.election is None else plane.election.controllers
    own = [candidate for candidate in plane.all_controllers if candidate not in elected]
    if is_new:
        await default_objects.create(own, plane.persistence, plane.clock, plane.writer.environment.identifiers)
    started: list[Reconciler[Any]] = []
    closing.push_async_callback(_stop, started)
    for controller in own:
        started.append(controller)  # before it starts: one that fails has to be stopped, too
        if is_new or controller in plane.controllers:
            await controller.start()
        else:
            controller.start_in_background()
    if plane.election is not None:
        closing.push_async_callback(plane.election.stop)
        await plane.election.start(is_new=is_new)


async def _stop(controllers: Sequence[Reconciler[Any]]) -> None:
    """Stop controllers, the last one first."""
    for controller in reversed(controllers):
        await controller.stop()


async def _is_new(plane: ControlPlane) -> bool:
    """Whether nothing has created the objects of every cluster yet."""
    try:
        return (
            await plane.store.get(key_of(resource_of(plane.served_resources, "", "namespaces"), "", "default")) is None
        )
    except Corrupt:
        return False


async def in_background(closing: contextlib.AsyncExitStack, work: Any, name: str) -> None:
    """Run a coroutine until `closing` is closed."""
    task = asyncio.create_task(work, name=name)

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    closing.push_async_callback(stop)
