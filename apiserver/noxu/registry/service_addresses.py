"""The addresses and node ports of services: which are allocated, and which a new service gets.

Upstream keeps them in objects of their own; here they follow from the stored services. Two writes at the same time must not
get the same address, so what a write has chosen is reserved until its service is stored, or has been refused. Where several servers
share a store, it is claimed, too (claims.py).

An address is taken at random from the upper part of the range, and from the rest if that is full: clients that choose
addresses themselves choose low ones (KEP-3070). A /24 has its first 16 addresses in the lower part, a /16 its first 256.
"""

from __future__ import annotations

import ipaddress
import random
import threading
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.api import errors, field
from noxu.api.field import FieldError
from noxu.kinds.services import HEADLESS, needs_address, needs_health_check, needs_node_ports
from noxu.values import Object, cached_property

DEFAULT_RANGE: Final = "10.0.0.0/24"
NODE_PORTS: Final = range(30_000, 32_768)
_SERVICE: Final = errors.Qualified("", "Service")
_TAKEN: Final = "provided IP is already allocated"
_ATTEMPTS: Final = 16  # random choices before all free ones are listed


class Allocated(NamedTuple):
    """What one service has."""

    addresses: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()


NOTHING: Final = Allocated()


def allocated(service: Object) -> Allocated:
    """The addresses and node ports of a service."""
    spec = service.get("spec") or {}
    addresses = {address for address in spec.get("clusterIPs") or () if address and address != HEADLESS}
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if spec.get("healthCheckNodePort"):
        ports.add(spec["healthCheckNodePort"])
    return Allocated(frozenset(addresses), frozenset(ports))


@lru_cache(maxsize=8)
def _network(addresses: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(addresses)


class AddressReservation:
    """What a write has chosen. Calling it ends the reservation."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def chosen(self) -> Allocated:
        return self._pool.held_by(self)

    def is_contested(self) -> bool:
        """Whether a stored service has some of it, too."""
        return self._pool.is_contested(self)

    def __call__(self) -> None:
        self._pool.hold(self, NOTHING)


class Pool:
    """The addresses and node ports of a cluster. Its methods may be called in several threads."""

    def __init__(self, addresses: str = DEFAULT_RANGE, ports: range = NODE_PORTS, seed: int | None = None) -> None:
        """`addresses` is a network of IPv4; `seed` makes the choices repeatable."""
        self.network = _network(addresses)
        self.ports = ports
        self._seed = seed
        self._owners: dict[Hashable, Allocated] = {}
        self._taken: dict[str | int, int] = {}  # counts: two stored services may have one address
        self._lock = threading.Lock()

    @cached_property
    def _random(self) -> random.Random:
        """Made with the first choice: it has 2.5 KB of state."""
        return random.Random(self._seed)  # noqa: S311

    def hold(self, owner: Hashable, what: Allocated) -> None:
        """Set what an owner has; NOTHING if it is gone."""
        with self._lock:
            self._hold(owner, what)

    def _hold(self, owner: Hashable, what: Allocated) -> None:
        before = self._owners.pop(owner, NOTHING)  # with the lock, as all that begins with an underscore
        released: tuple[str | int, ...] = (*before.addresses, *before.ports)
        for taken in released:
            self._taken[taken] -= 1
            if not self._taken[taken]:
                del self._taken[taken]  # so that it does not grow with what was once taken
        if what != NOTHING:
            self._owners[owner] = what
            held: tuple[str | int, ...] = (*what.addresses, *what.ports)
            for taken in held:
                self._taken[taken] = self._taken.get(taken, 0) + 1

    def hold_all(self, other: Pool) -> None:
        """Have what the owners in another pool have."""
        self._owners, self._taken = other._owners.copy(), other._taken.copy()

    def held_by(self, owner: Hashable) -> Allocated:
        """What an owner has."""
        with self._lock:
            return self._owners.get(owner, NOTHING)

    def is_contested(self, owner: Hashable) -> bool:
        """Whether another owner has some of what an owner has."""
        with self._lock:
            own = self._owners.get(owner, NOTHING)
            taken: tuple[str | int, ...] = (*own.addresses, *own.ports)
            return any(self._taken[address] > 1 for address in taken)

    def owners(self) -> set[Hashable]:
        return set(self._owners)

    def allocate(self, new: Object, old: Object | None, owner: Hashable) -> AddressReservation:
        """Complete the addresses and ports of a service that is being written, and reserve them. Raises ApiError.

        `owner` has what the stored service has.
        """
        ticket = AddressReservation(self)
        with self._lock:
            own = self._owners.get(owner, NOTHING) if old is not None else NOTHING
            try:
                self._addresses(new, old, ticket)
                self._ports(new, own, ticket)
            except errors.ApiError:
                self._hold(ticket, NOTHING)
                raise

        return ticket

    # -- addresses

    def _addresses(self, new: Object, old: Object | None, ticket: object) -> None:
        spec = new["spec"]
        had = old is not None and needs_address(old["spec"]) and bool(old["spec"].get("clusterIP"))
        if not needs_address(spec) or had or spec.get("clusterIP") == HEADLESS:
            return
        self._refuse_families(new)
        if spec.get("clusterIP"):
            addresses = [address for address in spec.get("clusterIPs") or [spec["clusterIP"]] if address != HEADLESS]
            for address in addresses:
                self._take(new, address)
        else:
            spec["clusterIP"] = self._free_address(new)  # in place: the object that is written
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
        self._hold(ticket, Allocated(frozenset(spec["clusterIPs"])))  # reserved until the write ends

    def _refuse_families(self, new: Object) -> None:
        spec, problems = new["spec"], []
        for n, family in enumerate(spec.get("ipFamilies") or ()):
            if family == "IPv6":
                path = field.index("spec.ipFamilies", n)
                problems.append(field.invalid(path, family, "not configured on this cluster"))
        if spec.get("ipFamilyPolicy") == "RequireDualStack":
            rule = "this cluster is not configured for dual-stack services"
            problems = [field.invalid("spec.ipFamilyPolicy", "RequireDualStack", rule)]
        if problems:
            raise _refused(new, problems)

    def _take(self, new: Object, address: str) -> None:
        why = ""
        try:
            if ipaddress.IPv4Address(address) not in self.network:
                why = "the provided network does not match the current range"
        except ValueError:
            return  # validation says so
        if address in self._taken:
            why = _TAKEN
        if why:
            rule = f"failed to allocate IP {address}: {why}"
            raise _refused(new, [field.invalid("spec.clusterIPs", new["spec"].get("clusterIPs"), rule)])

    def _free_address(self, new: Object) -> str:
        size = self.network.num_addresses - 2  # without the network's own and the broadcast address
        lower = min(max(16, size // 16), 256) if size >= 16 else 0
        for first, last in ((lower, size), (0, lower)):
            for _ in range(_ATTEMPTS if last > first else 0):
                address = self._address(self._random.randrange(first, last))
                if address not in self._taken:
                    return address
            free = [n for n in range(first, last) if self._address(n) not in self._taken] if self._is_small() else []
            if free:
                return self._address(self._random.choice(free))
        if not self._is_small():
            for n in range(size):
                if (address := self._address(n)) not in self._taken:
                    return address
        name = new["metadata"].get("name", "")
        raise errors.internal_error(f'failed to allocate a serviceIP for Service "{name}": range is full')

    def _is_small(self) -> bool:
        return self.network.num_addresses <= 4096

    def _address(self, n: int) -> str:
        return str(self.network.network_address + 1 + n)

    # -- ports

    def _ports(self, new: Object, own: Allocated, ticket: object) -> None:
        spec = new["spec"]
        chosen: set[int] = set()
        for n, port in enumerate(spec.get("ports") or () if needs_node_ports(spec) else ()):
            number = port.get("nodePort", 0)
            if number and number not in own.ports | chosen:
                self._take_port(new, n, number)
            if number:
                chosen.add(number)
        for port in spec.get("ports") or () if needs_node_ports(spec) else ():
            if not port.get("nodePort"):
                port["nodePort"] = self._free_port(new, chosen | own.ports)  # in place
                chosen.add(port["nodePort"])
        if needs_health_check(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port(new, chosen | own.ports)  # in place, like the ports
            chosen.add(spec["healthCheckNodePort"])
        reserved = self._owners.get(ticket, NOTHING)
        # a new value: what the ticket has of addresses stays
        self._hold(ticket, reserved._replace(ports=frozenset(chosen - own.ports)))

    def _take_port(self, new: Object, n: int, number: int) -> None:
        rule = ""
        if number not in self.ports:
            limits = f"{self.ports.start}-{self.ports.stop - 1}"
            rule = f"provided port is not in the valid range. The range of valid ports is {limits}"
        elif number in self._taken:
            rule = "provided port is already allocated"
        if rule:
            path = field.child(field.index("spec.ports", n), "nodePort")
            raise _refused(new, [field.invalid(path, number, rule)])

    def _free_port(self, new: Object, chosen: set[int]) -> int:
        for number in self._port_candidates():
            if number not in chosen and number not in self._taken:
                return number
        name = new["metadata"].get("name", "")
        raise errors.internal_error(f'failed to allocate a nodePort for Service "{name}": range is full')

    def _port_candidates(self) -> Iterator[int]:
        for _ in range(_ATTEMPTS):
            yield self._random.choice(self.ports)
        yield from self.ports


def _refused(service: Object, problems: list[FieldError]) -> errors.ApiError:
    return errors.invalid(_SERVICE, service["metadata"].get("name", ""), problems)
