"""Secrets with tokens of service accounts (upstream's serviceaccount-token-controller, pkg/controller/serviceaccount).

A Secret of the type `kubernetes.io/service-account-token` names its account in an annotation. The controller adds a token that
never expires, the CA of the server and the namespace, and annotates the uid of the account. When the account does not
exist, or is another one of the same name, the Secret is deleted.

The day on which the token of a Secret was last used is recorded in its label `kubernetes.io/legacy-token-last-used`
(pkg/serviceaccount/legacy.go).

Upstream writes the label while it authenticates the request. Here requests do not wait for it: the authenticator calls
`used`, which adds the Secret to the queue. `tokens` does so once a day for each token.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, NamedTuple, Self

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts, Reconciler
from noxu.kinds.core import SERVICE_ACCOUNT_TOKEN
from noxu.registry.access import User
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, DeleteOptions, Options, Preconditions, WriteRequest
from noxu.registry.resource import MERGE_PATCH
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object
from noxu_storage.types import Key

USER: Final = User("system:kube-controller-manager", groups=("system:authenticated",))
"""It signs, so it is not one of the service accounts of controllers."""
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_IN_STORE: Final = f'"{SERVICE_ACCOUNT_TOKEN}"'.encode()


class TokenController(Controller[Key]):
    """Keys are those of Secrets."""

    name = "serviceaccount-token-controller"
    follows = (("", "secrets"), ("", "serviceaccounts"))
    workers = 4

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        [self.accounts] = self.other_resources
        assert parts.sign_token is not None
        self._sign = parts.sign_token
        self._root_ca = base64.b64encode(parts.root_ca.encode()).decode()

    def observe(self, change: Change) -> Iterable[Key]:
        if change.key.collection == self.resource.collection:
            return [change.key] if change.entry is not None and _may_have_token(change.entry) else ()
        return [entry.key for entry in self.collection.entries_in(change.key.partition) if _may_have_token(entry)]

    def resync(self) -> Iterable[Key]:
        return [key for key, entry in self.collection.entries.items() if _may_have_token(entry)]

    async def reconcile(self, key: Key) -> None:
        entry = self.collection.entries.get(key)
        if entry is None:
            return
        secret = object_at(entry, self.resource)
        annotations = secret["metadata"].get("annotations") or {}
        if secret.get("type") != SERVICE_ACCOUNT_TOKEN:
            return
        account = self._account(entry.namespace, annotations.get(ACCOUNT_NAME, ""), annotations.get(ACCOUNT_UID, ""))
        if account is None:
            request = self._deletion(secret)
        elif (completed := self._completed(secret, account)) is not None:
            options = Options(field_manager=controller.CONTROLLER_MANAGER)
            request = WriteRequest(
                Action.REPLACE,
                self.resource,
                entry.namespace,
                key.name,
                body=Body(completed),
                options=options,
                user=USER,
            )
        else:
            return
        try:
            await self.writer.write(request)
        except ApiError:
            if self.collection.entries.get(key) is entry:
                raise
            # it has changed meanwhile, so its key is in the queue again

    def _account(self, namespace: str, name: str, uid: str) -> Object | None:
        entry = self.others[0].entries.get(key_of(self.accounts, namespace, name))
        account = None if entry is None else object_at(entry, self.accounts)
        return account if account is not None and uid in ("", account["metadata"]["uid"]) else None

    def _completed(self, secret: Object, account: Object) -> Object | None:
        """The Secret with everything that it lacks; None if it lacks nothing."""
        metadata, data = secret["metadata"], dict(secret.get("data") or {})
        before = dict(data)
        if self._root_ca:
            data["ca.crt"] = self._root_ca
        if not data.get("namespace"):
            data["namespace"] = base64.b64encode(metadata["namespace"].encode()).decode()
        if not data.get("token"):
            data["token"] = base64.b64encode(self._sign(account, metadata["name"]).encode()).decode()
        if data == before:
            return None
        of_account = {ACCOUNT_NAME: account["metadata"]["name"], ACCOUNT_UID: account["metadata"]["uid"]}
        annotations = (metadata.get("annotations") or {}) | of_account
        return {**secret, "metadata": {**metadata, "annotations": annotations}, "data": data}

    def _deletion(self, secret: Object) -> WriteRequest:
        metadata = secret["metadata"]
        return WriteRequest(
            Action.DELETE,
            self.resource,
            metadata["namespace"],
            metadata["name"],
            delete_options=DeleteOptions(preconditions=Preconditions(metadata["uid"])),
            options_sent={"preconditions": {"uid": metadata["uid"]}},
            user=USER,
        )


def _may_have_token(entry: StoredObject) -> bool:
    """Whether it may be a Secret with a token: a search in its bytes is cheaper than decoding it."""
    return _IN_STORE in entry.stored


# -- legacy tokens ----------------------------------------------------------------------------------------------------


LAST_USED: Final = "kubernetes.io/legacy-token-last-used"


class Used(NamedTuple):
    """A Secret whose token was used."""

    namespace: str
    name: str


class LegacyTokenController(Reconciler[Used]):
    """Writes the label. It follows nothing: its keys come from `used`."""

    name = "legacy-token-tracking-controller"

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts, "nothing")
        self._secrets = parts.resource("", "secrets")

    def used(self, namespace: str, name: str) -> None:
        """The token of this Secret was used."""
        self.queue.add(Used(namespace, name))

    async def _synchronise(self) -> None:
        self._set_synchronised()

    def _take_over(self, idle: Self) -> None:
        pass

    async def reconcile(self, key: Used) -> None:
        stored = await self.reader.stored(self._secrets, *key)
        if stored is None:
            return
        now = self.clock.now()
        metadata = object_at(stored, self._secrets)["metadata"]
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
            options=Options(field_manager=controller.APISERVER_MANAGER),
            user=controller.APISERVER,
            weight=len(patch),
        )
        try:
            await self.writer.write(request)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):  # the Secret is gone, or is another one
                raise
