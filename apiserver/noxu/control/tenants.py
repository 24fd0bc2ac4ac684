"""Tenants: whole servers beside one, in its process and event loop, each for a test that needs a server of its own.

    POST /_noxu/tenants {"hold": true}    {"name": "tenant-x7k2p", "url": "http://127.0.0.1:41873", "kubeconfig": "…", …}

A tenant is a task: it starts the server, waits until the tenant has to end, and stops the server. Whatever ends a tenant (its
time, the connection that holds it, a call, the stop of its parent, a start that fails) the same task gives back all that it
had. Its name is taken from the first moment to the last one, so two calls never make the same tenant.

The time of a tenant is process time (see `clock`): it limits what a client may cost. Tenants have no tenants.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from noxu.api import errors
from noxu.api.codec import Decoded
from noxu.api.errors import ApiError, Qualified
from noxu.api.names import dns1123_label
from noxu.clock import SYSTEM_CLOCK
from noxu.config import Config, NotLoadedError, StartError
from noxu.containment import Contained
from noxu.control import templates
from noxu.control.arguments import BOOLEAN, DURATION, Argument, Arguments, ArgumentType, one_of
from noxu.control.backup import states_at
from noxu.control.calls import ControlCall, ControlRoute, Created
from noxu.control.running import Control, Held, Running
from noxu.control.snapshots import Snapshots
from noxu.control.templates import Template
from noxu.go.time import SECOND, format_duration, format_time
from noxu.identifiers import new_suffix
from noxu.manifests import documents, loading, served_files
from noxu.manifests.documents import Document
from noxu.manifests.files import LoadError
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.storage_form import is_temporary
from noxu.security.kubeconfig import text
from noxu.values import Json, Object
from noxu_storage.memory import Base, base_of
from noxu_storage.types import Revision

DEFAULT_TTL: Final = 3600.0  # seconds, of a tenant that no connection holds
MAX_TTL: Final = 8760 * 3600.0  # seconds; a year
STARTS: Final = 4
"""Tenants that start at the same time. A start takes milliseconds of the event loop, and requests have their turns in between."""
STOPS: Final = 32
"""Likewise, that stop, which takes a third of a millisecond."""
TEMPLATE: Final = "template"
EMPTY: Final = "empty"
_TENANTS: Final = Qualified("", "tenants")

log = logging.getLogger("noxu")


class WantedTenant(NamedTuple):
    """What a call asks for. `ttl` is in seconds, None: no limit. `name` "": one that is free."""

    name: str = ""
    source: str | Object = TEMPLATE
    """TEMPLATE, EMPTY, or {"snapshot": NAME}."""
    ttl: float | None = DEFAULT_TTL
    is_held: bool = False
    manifests: Sequence[Object | str] = ()


@dataclass(slots=True, eq=False)
class Tenant:
    """`url` and `kubeconfig`, a text, are "" until it has started. `end` ends it."""

    name: str
    wanted: WantedTenant
    created: datetime
    url: str = ""
    kubeconfig: str = field(default="", repr=False)
    server: Running | None = field(default=None, repr=False)
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Everything that it had is given back."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """The answer that holds it is over."""

    @property
    def is_running(self) -> bool:
        return bool(self.url) and not self.ending.is_set()

    def end(self) -> None:
        """Stop it, also while it starts."""
        self.ending.set()
        if not self.url and self.task is not None:
            self.task.cancel()

    def described(self) -> Object:
        """All but the kubeconfig, which has credentials."""
        ttl = self.wanted.ttl
        described: Object = {
            "name": self.name,
            "url": self.url,
            "from": self.wanted.source,
            "hold": self.wanted.is_held,
            "created": format_time(self.created),
        }
        if ttl is not None:
            described["ttl"] = format_duration(int(ttl * SECOND))
            described["expires"] = format_time(self.created + timedelta(seconds=ttl))
        return described

    def complete(self) -> Object:
        """With the kubeconfig."""
        return {**self.described(), "kubeconfig": self.kubeconfig}


class TenantBeginning(NamedTuple):
    """What a tenant begins with: a template or stored objects, None: none, and the documents that it loads then."""

    template: Template | None
    documents: Sequence[Document]
    base: Base | None = None


class _KeptTemplate(NamedTuple):
    documents: Sequence[Document]
    making: asyncio.Future[Template]


class Tenants:
    """Those of one server."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._tenants: dict[str, Tenant] = {}  # in the order of their beginnings, those that start or stop included
        self._files: tuple[int, Sequence[Document]] | None = None
        """What the files of the server had after so many changes."""
        self._templates: dict[bool, _KeptTemplate] = {}
        """Of nothing, and of documents."""
        self._base: tuple[tuple[str, Revision], Base] | None = None
        """The objects of the snapshot that was asked for last."""
        self._starts, self._stops = asyncio.Semaphore(STARTS), asyncio.Semaphore(STOPS)
        control.closing.push_async_callback(self.close)

    @property
    def limit(self) -> int:
        return self._control.server.config.max_tenants

    def all(self) -> list[Tenant]:
        """Those that run."""
        return [tenant for tenant in self._tenants.values() if tenant.is_running]

    def get(self, name: str) -> Tenant:
        """Raises ApiError NotFound."""
        tenant = self._tenants.get(name)
        if tenant is None or not tenant.is_running:
            raise errors.not_found(_TENANTS, name)
        return tenant

    async def create(self, wanted: WantedTenant) -> Tenant:
        """A tenant that has started. Raises ApiError; then, and if it is cancelled, nothing is left."""
        if (parent := self._control.server.parent) is not None:
            raise errors.forbidden(_TENANTS, wanted.name, f"a tenant has no tenants of its own: ask {parent.url}")
        beginning = await self._beginning(wanted)
        name = wanted.name or self._free_name()
        while (former := self._tenants.get(name)) is not None and former.ending.is_set():
            await former.gone.wait()
        if former is not None:
            raise errors.already_exists(_TENANTS, name)
        if self._control.is_closed:  # meanwhile
            raise _unavailable("the server stops")
        self._check_limit()
        # nothing is awaited since the checks: the next call finds the name taken
        tenant = self._tenants[name] = Tenant(name, wanted, SYSTEM_CLOCK.now())
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        living = self._live(tenant, beginning, started)
        tenant.task = asyncio.create_task(living, name=f"tenant {name}", context=contextvars.Context())
        # a callback, because a task that is cancelled before its first step runs nothing of its coroutine
        tenant.task.add_done_callback(lambda _task: self._gone(tenant, started))
        try:
            await started
        except asyncio.CancelledError:  # the client is gone
            tenant.end()
            raise
        return tenant

    def _check_limit(self) -> None:
        if len(self._tenants) >= self.limit:
            raise ApiError(
                429,
                f"this server has {len(self._tenants)} tenants, and may have {self.limit}: delete some (`noxu tenant list`), give "
                "them a shorter ttl, or start it with a larger --max-tenants",
                "TooManyRequests",
            )

    def _free_name(self) -> str:
        while (name := f"tenant-{new_suffix()}") in self._tenants:
            pass
        return name

    async def _beginning(self, wanted: WantedTenant) -> TenantBeginning:
        """What a tenant begins with. Raises ApiError."""
        size = sum(len(source) if isinstance(source, str) else LOOP_LIMIT for source in wanted.manifests)
        try:
            own = await offload(size, _read, wanted.manifests)
            if isinstance(wanted.source, dict):
                return TenantBeginning(None, own, await self._snapshot(wanted.source["snapshot"]))
            beginning = await (self._empty() if wanted.source == EMPTY else self._as_given())
        except (LoadError, StartError) as error:
            raise _refused(error) from None
        return beginning._replace(documents=(*beginning.documents, *own))

    async def _snapshot(self, name: str) -> Base:
        """The objects of a snapshot of the server, read once. Raises ApiError NotFound, StoreError."""
        try:
            pin = await self._control.part(Snapshots).find(name)
        except ApiError:
            self._base = None  # of a snapshot that is deleted, perhaps
            raise
        if self._base is None or self._base[0] != (name, pin.revision):
            states = [
                state
                async for some in states_at(self._control.server.plane.store, pin.revision)
                for state in some
                if not is_temporary(state.key)
            ]
            base = await asyncio.to_thread(base_of, states, pin.revision, pin.revision)
            self._base = (name, pin.revision), base
        return self._base[1]

    async def _as_given(self) -> TenantBeginning:
        """What the server itself was started with. Raises StartError."""
        server = self._control.server
        if server.template is not None:
            return TenantBeginning(server.template, server.given or ())
        given = await self._given()
        if not given:
            return await self._empty()
        if (template := await self._template(given)) is None:
            return TenantBeginning(None, given)
        if templates.has_tokens(template):  # which each server has to sign itself
            return (await self._empty())._replace(documents=given)
        return TenantBeginning(template, ())

    async def _empty(self) -> TenantBeginning:
        return TenantBeginning(await self._template(()), ())

    async def _given(self) -> Sequence[Document]:
        """The documents of the server. Its files are read when this is first needed, and again if `--watch` sees a change.

        Raises StartError.
        """
        server = self._control.server
        if server.given is not None:
            return server.given
        changes = 0 if server.watch is None else server.watch.changes
        if self._files is None or self._files[0] != changes:
            read = await asyncio.to_thread(served_files.read_documents, server.config, server.read)
            self._files = changes, read
        return self._files[1]

    async def _template(self, given: Sequence[Document]) -> Template | None:
        """The template of documents, which is made once; None: there can be none. Raises StartError.

        One is kept for nothing, and one for the newest documents.
        """
        config = self._control.server.tenants_config
        if not templates.is_possible(config):
            return None
        kept = self._templates.get(bool(given))
        if kept is None or kept.documents is not given:
            # put there before anything is awaited, so that there is one for all who ask at the same time
            kept = self._templates[bool(given)] = _KeptTemplate(given, asyncio.ensure_future(self._make(config, given)))
            kept.making.add_done_callback(partial(self._made, kept))
        return await asyncio.shield(kept.making)  # a client that is gone does not end it for the others

    def _made(self, kept: _KeptTemplate, making: asyncio.Future[Template]) -> None:
        """A template is made, or has failed: then the next call tries again."""
        has_failed = making.cancelled() or making.exception() is not None
        if has_failed and self._templates.get(bool(kept.documents)) is kept:
            del self._templates[bool(kept.documents)]

    async def _make(self, config: Config, given: Sequence[Document]) -> Template:
        """Raises StartError."""
        empty = await self._template(()) if given else None
        server = self._control.server
        return await templates.make(config, given, server.caller, empty, server.definitions)

    async def _live(self, tenant: Tenant, beginning: TenantBeginning, started: asyncio.Future[None]) -> None:
        """The life of a tenant. `started` is done when it runs, or has failed to start."""
        life = contextlib.AsyncExitStack()
        with Contained(f"the tenant {tenant.name}") as contained:
            try:
                async with self._starts:
                    server = await life.enter_async_context(self._control.server.tenant(*beginning))
                tenant.server = server
                tenant.url, tenant.kubeconfig = server.url, text(server.access())
                if not started.done():
                    started.set_result(None)
                await _ended(tenant)
            except StartError as error:
                if not started.done():
                    started.set_exception(_refused(error))
            finally:
                async with self._stops:  # not together with starts, which may take long
                    await life.aclose()
        if contained.error is not None and not started.done():
            started.set_exception(contained.error)  # which is logged

    def _gone(self, tenant: Tenant, started: asyncio.Future[None]) -> None:
        """The last step: from here on the name is free."""
        del self._tenants[tenant.name]
        tenant.server = None  # those who know the tenant do not keep the memory of its server
        if not started.done():
            started.set_exception(_unavailable("the tenant was ended before it had started"))
        for event in (tenant.ending, tenant.gone, tenant.released):
            event.set()

    async def delete(self, name: str) -> Tenant:
        """Return when it is gone. Raises ApiError NotFound."""
        tenant = self.get(name)
        tenant.end()
        await tenant.gone.wait()
        return tenant

    async def close(self) -> None:
        """End all of them."""
        for kept in self._templates.values():
            kept.making.cancel()
        tenants = list(self._tenants.values())
        for tenant in tenants:
            tenant.end()
        for tenant in tenants:
            await tenant.gone.wait()


async def _ended(tenant: Tenant) -> None:
    """Wait until a tenant has to end."""
    try:
        async with asyncio.timeout(tenant.wanted.ttl):
            await tenant.ending.wait()
    except TimeoutError:
        log.info("the tenant %s ends: its time is over", tenant.name)
        tenant.ending.set()


def _refused(error: StartError | LoadError) -> ApiError:
    """Why a tenant does not start: what it loads is wrong, or the system has too little of something."""
    if isinstance(error, (NotLoadedError, LoadError)):
        causes = [{"reason": "FieldValueInvalid", "message": str(each), "field": "manifests"} for each in error.args]
        message = f"the tenant does not start: {'; '.join(map(str, error.args))}"
        return ApiError(422, message, "Invalid", {"causes": causes})
    return _unavailable(f"the tenant does not start: {error}")


def _unavailable(message: str) -> ApiError:
    return ApiError(503, message, "ServiceUnavailable")


def _read(manifests: Sequence[Object | str]) -> list[Document]:
    """The objects of manifests, in the order in which they are to be loaded. Raises LoadError."""
    read: list[Document] = []
    for number, source in enumerate(manifests):
        place = f"manifests[{number}]"
        read += (
            documents.read(source.encode(), place)
            if isinstance(source, str)
            else documents.flatten(Decoded(source), place)
        )
    return loading.ready(documents.checked(read))


# -- calls -------------------------------------------------------------------------------------------------------------


def _name(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    if wrong := dns1123_label(value):
        raise ValueError("; ".join(wrong))
    return value


def _source(value: Json) -> str | Object:
    if not isinstance(value, dict):
        return str(one_of(TEMPLATE, EMPTY).from_json(value))
    if list(value) != ["snapshot"] or not isinstance(value["snapshot"], str):
        raise ValueError('expected template, empty, or {"snapshot": NAME}')
    return value


def _ttl(value: Json) -> float:
    seconds: float = DURATION.from_json(value)
    if not 0 < seconds <= MAX_TTL:
        raise ValueError("a tenant lives for more than 0s, and for 8760h at most")
    return seconds


def _manifests(value: Json) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(item, (dict, str)) for item in value):
        raise ValueError("expected a list of objects, and of texts in YAML or JSON")
    return value


def _only_in_bodies(_texts: Sequence[str]) -> Any:
    raise ValueError("it may only be in a body")


_CREATE: Final[Arguments] = {
    "name": Argument(ArgumentType("a DNS label", _name, _only_in_bodies), "its name; one that is free by default"),
    "from": Argument(
        ArgumentType('template, empty, or {"snapshot": NAME}', _source, _only_in_bodies),
        "template: with what this server was started with; empty: with nothing; or with the objects of a snapshot of it",
        TEMPLATE,
    ),
    "manifests": Argument(
        ArgumentType("a list of objects or texts", _manifests, _only_in_bodies),
        "further objects, loaded before it answers",
        (),
    ),
    "hold": Argument(BOOLEAN, "the answer stays open, and the tenant lives as long as the connection", False),
    "ttl": Argument(
        ArgumentType(DURATION.name, _ttl, _only_in_bodies),
        "it is deleted after this time; 1h by default, and without a limit if a connection holds it",
    ),
}


async def create(call: ControlCall) -> Created | Held:
    """A tenant, with its kubeconfig."""
    body, tenants = call.body, call.control.part(Tenants)
    ttl = body["ttl"] if body["ttl"] or body["hold"] else DEFAULT_TTL
    wanted = WantedTenant(body["name"] or "", body["from"], ttl, body["hold"], body["manifests"])
    tenant = await tenants.create(wanted)
    if not wanted.is_held:
        return Created(tenant.complete())

    async def end() -> None:
        tenant.end()
        await tenant.gone.wait()

    return Held(tenant.complete(), end, over=tenant.released)


async def list_(call: ControlCall) -> Object:
    """All tenants, without their kubeconfigs."""
    tenants = call.control.part(Tenants)
    return {"items": [tenant.described() for tenant in tenants.all()], "limit": tenants.limit}


async def get(call: ControlCall) -> Object:
    """One tenant, with its kubeconfig."""
    return call.control.part(Tenants).get(call.path["tenant"]).complete()


async def delete(call: ControlCall) -> Object:
    """The tenant that is gone when this returns."""
    return (await call.control.part(Tenants).delete(call.path["tenant"])).described()


_ALL, _ONE = "/_noxu/tenants", "/_noxu/tenants/{tenant}"
ROUTES: Final[Sequence[ControlRoute]] = (
    ControlRoute("POST", _ALL, create, "Create a server of its own, in this process.", body=_CREATE),
    ControlRoute("GET", _ALL, list_, "List the tenants."),
    ControlRoute("GET", _ONE, get, "Get a tenant, with its kubeconfig."),
    ControlRoute("DELETE", _ONE, delete, "Delete a tenant."),
)
