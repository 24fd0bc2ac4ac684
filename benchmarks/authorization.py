"""Measures the mode RBAC: `python -m benchmarks.authorization [--roles N]`.

Prints the processor time of a question with that many roles and bindings, the ratio to parsing the target of the same request,
and the memory of a role and of a binding.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from functools import partial

from benchmarks.calls import seconds
from noxu.http.request import parse_target
from noxu.registry.access import AccessAttributes, User
from noxu.security.authorization import authorizer
from noxu.security.rbac import RolePolicy
from noxu.values import Object

TARGET = "/apis/example.com/v1/namespaces/default/widgets/a"
CALLS = 20_000
ROUNDS = 3
SUBJECTS: dict[str, Callable[[int], str]] = {
    "a user for each binding": "user-{}".format,
    "all bindings for one user": lambda n: "user",  # noqa: ARG005 - the same for all
}


def role(n: int) -> Object:
    return {"rules": [{"verbs": ["get", "list", "watch"], "apiGroups": ["example.com"], "resources": [f"widgets-{n}"]}]}


def binding(n: int, user: str) -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"role-{n}"}
    return {"roleRef": reference, "subjects": [{"kind": "User", "name": user}]}


def question(n: int, user: str, verb: str) -> AccessAttributes:
    of = User(user, groups=("developers", "system:authenticated"))
    return AccessAttributes(of, verb, "example.com", "v1", f"widgets-{n}", "", "default", "a")


def microseconds(function: Callable[[], object]) -> float:
    return seconds(function, calls=CALLS, rounds=ROUNDS) * 1e6


def measure(roles: int) -> None:
    parsing = microseconds(lambda: parse_target("GET", TARGET))
    print(f"parsing the target: {parsing:.2f} µs")
    for name, user_of in SUBJECTS.items():
        tracemalloc.start()
        policy = RolePolicy()
        for n in range(roles):
            policy.put_role("", f"role-{n}", role(n))
        of_role = tracemalloc.get_traced_memory()[0] / roles
        for n in range(roles):
            policy.put_binding("", f"binding-{n:06}", binding(n, user_of(n)))
        of_binding = tracemalloc.get_traced_memory()[0] / roles - of_role
        tracemalloc.stop()
        authorize, last = authorizer(["RBAC"], policy), roles - 1
        for what, verb in (("allowed", "get"), ("refused", "delete")):
            asked = question(last, user_of(last), verb)
            assert authorize(asked).allowed is (verb == "get")
            found = microseconds(partial(authorize, asked))
            print(f"{name}, {what}: {found:.2f} µs, {found / parsing:.1f} of parsing")
        print(f"{name}: {of_role:.0f} bytes for a role, {of_binding:.0f} for a binding")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the mode RBAC costs")
    parser.add_argument(
        "--roles", type=int, default=500, help="the number of roles and bindings (default: %(default)s)"
    )
    measure(parser.parse_args().roles)


if __name__ == "__main__":
    main()
