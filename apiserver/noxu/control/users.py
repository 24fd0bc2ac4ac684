"""Users of a running server: credentials and a kubeconfig for anybody, as whom a test or a person wants to ask.

Over HTTP a user has a random token, which is valid until the server stops; over TLS a client certificate. Who has somebody's
credentials can do what they may, so making them is allowed to those who may impersonate the user and the groups
(`security.impersonation`): with RBAC `system:masters`, and who has rules with the verb `impersonate`.
"""

from __future__ import annotations

from typing import Final

from noxu.control.arguments import TEXT, TEXTS, Argument, refused
from noxu.control.calls import ControlCall, ControlRoute, Created
from noxu.registry.access import AccessAttributes, User
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.security.credentials import checked_groups
from noxu.security.impersonation import impersonate
from noxu.security.kubeconfig import text

PATH: Final = "/_noxu/users"


async def create(call: ControlCall) -> Created:
    """Make credentials. Raises ApiError Forbidden, Invalid."""
    server, body = call.control.server, call.body
    user = User(body["name"], body["uid"], tuple(body["groups"]))
    impersonate(call.plane.authorize, AccessAttributes(call.user, "post", path=PATH), user)
    if not user.name:
        raise refused("name", "a user has a name")
    try:
        checked_groups(user.groups)
        access = await offload(LOOP_LIMIT + 1, server.access_of, user)  # in a thread: a key may be made
    except ValueError as error:
        raise refused("", str(error)) from None
    return Created(
        {"name": user.name, "uid": user.uid, "groups": [*user.groups], "url": access.url, "kubeconfig": text(access)}
    )


ROUTES: Final = (
    ControlRoute(
        "POST",
        PATH,
        create,
        "Make a kubeconfig for another user.",
        body={
            "name": Argument(TEXT, "the name of the user", required=True),
            "groups": Argument(TEXTS, "its groups, besides system:authenticated", ()),
            "uid": Argument(TEXT, "its uid, which only a token can have", ""),
        },
    ),
)
