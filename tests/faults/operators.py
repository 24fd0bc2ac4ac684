"""Small operators, each with a bug of a class that studies have found in controllers, and the same one without it.

They turn orders (ConfigMaps with the label `order`) into shipments (ConfigMaps with the label `shipment`), each with plain HTTP and
without a framework, so that a reader sees the bug. `is_fixed` is the difference. They do one thing after the other, so with the
same seed they meet the same faults.

An operator that raises has crashed; it is started again and remembers nothing: see `lives`.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

AGENT: Final = "operator/1"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator"
ORDERS: Final = f"{MAPS}?labelSelector=order"
SHIPMENTS: Final = f"{MAPS}?labelSelector=shipment"
TIMEOUT: Final = 60.0  # seconds: no test waits for it
BROKEN: Final = (ConnectionError, http.client.HTTPException, TimeoutError)
"""What a client sees of a connection that breaks."""

Value = dict[str, Any]


class Answer(NamedTuple):
    code: int
    value: Value

    @property
    def has_succeeded(self) -> bool:
        return self.code < 300


class Api:
    """A client. Raises one of BROKEN."""

    def __init__(self, url: str) -> None:
        self.authority = urlsplit(url).netloc

    def __call__(self, method: str, path: str, value: Value | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.authority, timeout=TIMEOUT)
        try:
            body = None if value is None else json.dumps(value)
            connection.request(method, path, body, {"Content-Type": "application/json", "User-Agent": AGENT})
            answer = connection.getresponse()
            return Answer(answer.status, json.loads(answer.read() or b"{}"))
        finally:
            connection.close()

    def items(self, path: str) -> list[Value]:
        """Raises RuntimeError for a list that is refused."""
        answer = self("GET", path)
        if not answer.has_succeeded:
            raise RuntimeError(answer.value)
        return list(answer.value["items"])


def config_map(name: str, label: str, *, generated: bool = False, **data: str) -> Value:
    """A new object, of which the server adds to the name if it is `generated`."""
    metadata = {("generateName" if generated else "name"): name, "labels": {label: "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lives(operator: Callable[[], None], most: int = 100) -> None:
    """Start an operator again until it ends by itself."""
    for _ in range(most):
        try:
            operator()
        except (*BROKEN, RuntimeError):
            continue
        return
    raise AssertionError(f"it has crashed {most} times")


def until_written(write: Callable[[], Answer]) -> Answer:
    """Repeat a write until it succeeds, or is there already: it must be one that may be repeated."""
    while True:
        try:
            answer = write()
        except BROKEN:
            continue
        if answer.has_succeeded or answer.value.get("reason") == "AlreadyExists":
            return answer


# -- conflicts: the answer of an update is not looked at ---------------------------------------------------------------


def count_orders(api: Api, *, is_fixed: bool) -> None:
    """Add one to `total` for each order."""
    for _ in api.items(ORDERS):
        while True:
            total = api("GET", f"{MAPS}/total").value
            total["data"]["n"] = str(int(total["data"]["n"]) + 1)
            if api("PUT", f"{MAPS}/total", total).has_succeeded or not is_fixed:
                break


# -- ambiguous writes: a create with a generated name is repeated ------------------------------------------------------


def ship_each(api: Api, *, is_fixed: bool) -> None:
    for order in api.items(ORDERS):
        name = order["metadata"]["name"]
        shipment = config_map(f"for-{name}" if is_fixed else f"for-{name}-", "shipment", generated=not is_fixed)
        until_written(lambda shipment=shipment: api("POST", MAPS, shipment))  # type: ignore[misc]


# -- stale reads: what an old list does not have is taken for deleted --------------------------------------------------


def delete_orphans(api: Api, *, is_fixed: bool) -> None:
    """Delete the shipments whose order is gone."""
    orders = {order["metadata"]["name"] for order in api.items(f"{ORDERS}&resourceVersion=0")}
    for shipment in api.items(SHIPMENTS):
        name, order = shipment["metadata"]["name"], shipment["metadata"]["name"].removeprefix("for-")
        if order in orders or (is_fixed and api("GET", f"{MAPS}/{order}").has_succeeded):
            continue
        api("DELETE", f"{MAPS}/{name}")


# -- watches: what happened before the 410 is not seen; a watch that breaks is not opened again ------------------------


class Watching:
    """Ships orders as a watch shows them, up to a revision."""

    def __init__(self, api: Api, *, relists: bool = True, reconnects: bool = True) -> None:
        self._api = api
        self._relists, self._reconnects = relists, reconnects
        self._is_dead = False
        self._seen = self._list(ships=True)

    def _list(self, *, ships: bool) -> int:
        listed = self._api("GET", ORDERS).value
        for order in listed["items"] if ships else ():
            self._ship(order)
        return int(listed["metadata"]["resourceVersion"])

    def _ship(self, order: Value) -> None:
        shipment = config_map(f"for-{order['metadata']['name']}", "shipment")
        until_written(lambda: self._api("POST", MAPS, shipment))

    def follow(self, upto: int, attempts: int = 100) -> None:
        """Handle what has happened up to a revision, unless the server is down."""
        for _ in range(attempts):
            if self._seen >= upto or self._is_dead:
                return
            try:
                self._watch(upto)
            except BROKEN:
                self._is_dead = not self._reconnects

    def _watch(self, upto: int) -> None:
        for event in self._events():
            changed = event["object"]
            if event["type"] == "ERROR":  # 410: list again
                self._seen = self._list(ships=self._relists)
                return
            self._ship(changed)
            self._seen = int(changed["metadata"]["resourceVersion"])
            if self._seen >= upto:
                return

    def _events(self) -> Iterator[Value]:
        connection = http.client.HTTPConnection(self._api.authority, timeout=TIMEOUT)
        try:
            path = f"{ORDERS}&watch=1&resourceVersion={self._seen}"
            connection.request("GET", path, headers={"User-Agent": AGENT})
            answer = connection.getresponse()
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()


# -- partition, slow server: an error is logged, and the order forgotten -----------------------------------------------


def ship_once(api: Api, *, is_fixed: bool) -> None:
    def create(name: str) -> Answer:
        return api("POST", MAPS, config_map(f"for-{name}", "shipment"))

    for order in api.items(ORDERS):
        name = order["metadata"]["name"]
        if is_fixed:
            until_written(lambda name=name: create(name))  # type: ignore[misc]
            continue
        try:
            create(name)
        except BROKEN:
            continue  # it would log the error


# -- leader election: who cannot renew goes on -------------------------------------------------------------------------


class Replica:
    """One of two, of which the leader works. `now` is in seconds."""

    LASTS: Final = 15
    GIVES_UP_AFTER: Final = 10

    def __init__(self, api: Api, name: str, *, is_fixed: bool) -> None:
        self._api, self._name, self._is_fixed = api, name, is_fixed
        self.is_leader = False
        self._renewed = 0

    def step(self, now: int) -> None:
        lease = self._api("GET", LEASE).value
        is_mine = lease["spec"]["holderIdentity"] == self._name
        is_over = int(lease["metadata"]["annotations"]["renewed"]) + self.LASTS < now
        if is_mine or is_over or (self.is_leader and not self._is_fixed):
            lease["spec"]["holderIdentity"] = self._name
            lease["metadata"]["annotations"]["renewed"] = str(now)
            if (is_mine or is_over) and self._api("PUT", LEASE, lease).has_succeeded:
                self.is_leader, self._renewed = True, now
                return
        if self._is_fixed and (not is_mine or now - self._renewed >= self.GIVES_UP_AFTER):
            self.is_leader = False


# -- crashes: what is written first says that everything is done -------------------------------------------------------


def ship_and_mark(api: Api, *, is_fixed: bool) -> None:
    for order in api.items(ORDERS):
        if "shipped" in order.get("data", {}):
            continue
        name = order["metadata"]["name"]
        order["data"] = {"shipped": "yes"}

        def mark(order: Value = order, name: str = name) -> Answer:
            return api("PUT", f"{MAPS}/{name}", order)

        def ship(name: str = name) -> Answer:
            return api("POST", MAPS, config_map(f"for-{name}", "shipment"))

        for write in (ship, mark) if is_fixed else (mark, ship):
            write()


if __name__ == "__main__":  # a program under test: `python -m tests.faults.operators buggy`
    ship_and_mark(Api(os.environ["NOXU_URL"]), is_fixed=sys.argv[1] == "fixed")
