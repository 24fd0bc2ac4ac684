"""What several servers with the same store have answered is in force in each of them.

A request that arrives at one server may follow the answer of another one: to a new schema, a policy, a binding that is
gone. So it waits until this server has applied what the store had when it arrived, and has compiled what follows from that.
Requests that arrive together share one question to the store.
"""

from __future__ import annotations

from noxu.registry.draft import Follower, WriteEnvironment


async def be_fresh(environment: WriteEnvironment, definitions: str, name: str) -> None:
    """Wait for all that was answered before, by whatever server. Raises ApiError, StoreError.

    `definitions` is the collection of definitions. Of these, that of the request has the `name`; others are not waited for.
    """
    await environment.reader.be_fresh()
    followers: dict[Follower, None] = dict.fromkeys(environment.followers.values())
    first = environment.followers[definitions]
    await first.caught_up(name)
    for follower in followers:
        if follower is not first:
            await follower.caught_up()
