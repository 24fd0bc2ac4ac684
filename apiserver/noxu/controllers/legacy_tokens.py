"""Records on which day the token of a Secret was last used: its label `kubernetes.io/legacy-token-last-used`
(pkg/serviceaccount/legacy.go).

Upstream writes the label while it authenticates the request. Here requests do not wait for it: the authenticator calls
`used`, which adds the Secret to the queue. `tokens` does so once a day for each token.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.clock import Clock
from noxu.controllers import users
from noxu.controllers.controller import Reconciler
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.entry import object_at
from noxu.registry.patch_types import MERGE_PATCH
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.writer import Writer

LAST_USED: Final = "kubernetes.io/legacy-token-last-used"


class Used(NamedTuple):
    """A Secret whose token was used."""

    namespace: str
    name: str


class LegacyTokenController(Reconciler[Used]):
    """Writes the label. It follows nothing: its keys come from `used`."""

    name = "legacy-token-tracking-controller"

    def __init__(self, reader: Reader, writer: Writer, secrets: Resource, clock: Clock) -> None:
        super().__init__(reader, clock, "nothing")
        self._writer = writer
        self._secrets = secrets

    def used(self, namespace: str, name: str) -> None:
        """The token of this Secret was used."""
        self.queue.add(Used(namespace, name))

    async def _synchronise(self) -> None:
        self._set_synchronised()

    async def reconcile(self, key: Used) -> None:
        found = await self.reader.stored(self._secrets, *key)
        if found is None:
            return
        now = self.clock.now()
        metadata = object_at(found, self._secrets)["metadata"]
        days = [(now + timedelta(days=n)).date().isoformat() for n in (0, 1)]  # clocks of other servers may be ahead
        if (metadata.get("labels") or {}).get(LAST_USED) in days:
            return
        patch = codec.encode({"metadata": {"uid": metadata["uid"], "labels": {LAST_USED: days[0]}}}, sort_keys=False)
        request = WriteRequest(
            Action.PATCH,
            self._secrets,
            key.namespace,
            key.name,
            body=Body(patch, MERGE_PATCH),
            options=Options(field_manager=users.APISERVER_MANAGER),
            user=users.APISERVER,
            weight=len(patch),
        )
        try:
            await self._writer.write(request)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):  # the Secret is gone, or is another one
                raise
