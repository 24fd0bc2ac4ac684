"""The rules of a server that are on: which of them hit a request, and what they have hit.

    armed = Armed(seed=7)
    armed.add(rules, now)
    armed.hits(asked, now)      the rules that hit a request, in their order

A request that a rule matches has a number of that rule: its first one is 1, whether it is hit or not. Chance is a function of
the seed, the name of the rule and that number, so the same behaviour of a client meets the same faults, whatever other clients
do. Rules are indexed by verb, resource and subresource: those about other requests cost one lookup together.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from noxu.control.faults.effects import Scope
from noxu.control.faults.rules import Match, Rule
from noxu.go.time import format_time
from noxu.values import Object
from noxu_storage.types import Revision

MAX_FIRED: Final = 10_000
"""The newest hits are kept."""
MAX_FLOORS: Final = 100
"""Views that are over, whose clients have to list again; the newest."""
MAX_INDEXED: Final = 1000
"""Kinds of requests whose rules are remembered."""


class Asked(NamedTuple):
    """What rules see of a request. `resource` is `widgets.example.com`, "" if it is for none."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    agent: str
    id: str
    """Its Audit-Id."""


class ClientView(NamedTuple):
    """A rule about what a client sees, and the revision that it shows. `is_whole`: it is about all that was asked for."""

    rule: Rule
    revision: Revision
    is_whole: bool


class Hit(NamedTuple):
    """A rule that hits a request. `number` is that of the request, of those that the rule matches."""

    rule: Rule
    number: int
    asked: Asked
    time: datetime

    def described(self) -> Object:
        request = {name: value for name, value in self.asked._asdict().items() if value}
        effect = {self.rule.effect.kind: self.rule.source.get(self.rule.effect.kind)}
        return {
            "rule": self.rule.name,
            "number": self.number,
            "time": format_time(self.time),
            **effect,
            "request": request,
        }


@dataclass(slots=True)
class _Count:
    """What a rule has seen since it was added."""

    rule: Rule
    added: datetime
    revision: Revision
    is_armed: bool = True
    """Whether its trigger has fired, or it has none."""
    matched: int = 0
    hit: int = 0


class _Candidates(NamedTuple):
    """The rules about a kind of request: those for objects of a name, and those for all."""

    named: Mapping[str, Sequence[_Count]]
    others: Sequence[_Count]


@dataclass(eq=False)
class Armed:
    """Rules that are on. Times are object time."""

    seed: int = 0
    fired: deque[Hit] = field(default_factory=lambda: deque(maxlen=MAX_FIRED))
    number_fired: int = 0
    """Also of those that are no longer kept."""
    _counts: dict[str, _Count] = field(default_factory=dict)
    _floors: deque[tuple[Match, Revision, Revision]] = field(default_factory=lambda: deque(maxlen=MAX_FLOORS))
    """Of views that are over: from the first revision on, up to the last one, their clients cannot watch."""
    _index: dict[tuple[Scope, str, str, str], _Candidates] = field(default_factory=dict)

    @property
    def rules(self) -> list[Rule]:
        return [count.rule for count in self._counts.values()]

    def __bool__(self) -> bool:
        return bool(self._counts or self._floors)

    def add(self, rules: Sequence[Rule], now: datetime, revision: Revision = 0) -> None:
        """`revision` is the newest one."""
        self._counts.update({rule.name: _Count(rule, now, revision, rule.trigger is None) for rule in rules})
        self._index.clear()

    def arm(self, name: str, now: datetime, revision: Revision) -> None:
        """The trigger of a rule has fired: it is on from now on, and what it counts begins now."""
        count = self._counts[name]
        count.is_armed, count.added, count.revision = True, now, revision

    @property
    def waiting(self) -> list[Rule]:
        """The rules whose trigger has not fired."""
        return [count.rule for count in self._counts.values() if not count.is_armed]

    @property
    def restarts(self) -> list[tuple[Rule, datetime]]:
        """The rules of restarts that are armed, and when they begin."""
        return [
            (count.rule, _since(count.rule.limits.since, count.added))
            for count in self._counts.values()
            if count.is_armed and count.rule.effect.kind == "restart"
        ]

    def of_pods(self, now: datetime) -> list[Rule]:
        """The rules for simulated pods that are on."""
        return [count.rule for count in self._counts.values() if count.rule.effect.kind == "pod" and _is_on(count, now)]

    def remove(self, name: str, revision: Revision = 0) -> None:
        """`revision` is the newest one. Raises KeyError."""
        self._release(self._counts.pop(name), revision)
        self._index.clear()

    def replace(self, rules: Sequence[Rule], seed: int, now: datetime, revision: Revision = 0) -> None:
        """Other rules, which have seen nothing."""
        for count in self._counts.values():
            self._release(count, revision)
        self._counts.clear()
        self.seed = seed
        self.add(rules, now, revision)

    def described(self) -> list[Object]:
        """The rules, with how many requests they have matched and hit; `waits`: for their trigger."""
        return [
            {
                **count.rule.source,
                **({} if count.is_armed else {"waits": True}),
                "matched": count.matched,
                "hit": count.hit,
            }
            for count in self._counts.values()
        ]

    def views(self, asked: Asked, now: datetime) -> list[ClientView]:
        """The rules about what a client sees that are on. Nothing is counted. `asked` is a list, or a watch."""
        candidates = self._of("view", asked)
        counts = {count.rule.name: count for named in candidates.named.values() for count in named}
        counts |= {count.rule.name: count for count in candidates.others}
        return [
            ClientView(count.rule, count.revision, _is_whole(count.rule.match, asked))
            for count in counts.values()
            if _is_on(count, now) and _fits_client(count.rule.match, asked)
            if not asked.namespace or count.rule.match.namespace in (None, asked.namespace)
        ]

    def oldest_shown(self) -> Revision:
        """The oldest revision that a view shows or will show; 0: there are no views."""
        views = [count for count in self._counts.values() if count.rule.effect.kind == "view" and count.is_armed]
        return min((count.revision for count in views), default=0)

    def _release(self, count: _Count, revision: Revision) -> None:
        """A view is over: its client must not go on from before, where it would see what it was not to see."""
        match, effect = count.rule.match, count.rule.effect
        is_held = effect.kind == "view" and (effect.parameters["what"] == "hold" or match.name or match.namespace)
        if is_held and count.is_armed and count.revision < revision:
            self._floors.append((match, count.revision, revision))

    def floor(self, watch: Asked, after: Revision) -> Revision:
        """The oldest revision that a client can watch from, whose view is over; 0: it can from `after`."""
        floors = [
            newest
            for match, oldest, newest in self._floors
            if oldest <= after < newest and match.resource == watch.resource and _fits_client(match, watch)
        ]
        return max(floors, default=0)

    def next_change(self, now: datetime) -> datetime | None:
        """When a view or a rule for pods begins or ends by itself next; None: never."""
        moments = [
            _since(moment, count.added)
            for count in self._counts.values()
            for moment in (count.rule.limits.since, count.rule.limits.until)
            if moment and count.is_armed and count.rule.effect.kind in ("view", "restart", "pod")
        ]
        return min((moment for moment in moments if moment > now), default=None)

    def has_rules(self, asked: Asked, scope: Scope) -> bool:
        """Whether there are rules of this scope about such requests, which may hit this one."""
        candidates = self._of(scope, asked)
        return bool(candidates.named or candidates.others)

    def rules_about(self, watch: Asked) -> list[Rule]:
        """The rules that may hit events of a watch."""
        candidates = self._of("event", watch)
        counts = [*candidates.others, *(count for named in candidates.named.values() for count in named)]
        return [count.rule for count in counts if _fits_client(count.rule.match, watch)]

    def delay(self, hit: Hit) -> float:
        """The seconds by which a hit is late, between the limits of its effect; the same in each run."""
        shortest, longest = hit.rule.effect.parameters["min"], hit.rule.effect.parameters["max"]
        at = chance(self.seed, f"{hit.rule.name}/delay", hit.number)
        return float(shortest + (longest - shortest) * at)

    def note(self, rule: Rule, asked: Asked, now: datetime) -> None:
        """List something that a rule has done by itself."""
        count = self._counts[rule.name]
        count.hit += 1
        self.fired.append(Hit(rule, count.hit, asked, now))
        self.number_fired += 1

    def hits(self, asked: Asked, now: datetime, scope: Scope = "request") -> list[Hit]:
        """The rules that hit a request or an event, in the order in which they were added."""
        candidates = self._of(scope, asked)
        counts = candidates.named.get(asked.name, candidates.others) if candidates.named else candidates.others
        hits = [
            Hit(count.rule, count.matched, asked, now)
            for count in counts
            if _matches(count.rule.match, asked) and self._counts_in(count, now)
        ]
        if hits:
            self.fired.extend(hits)
            self.number_fired += len(hits)
        return hits

    def _of(self, scope: Scope, asked: Asked) -> _Candidates:
        key = scope, asked.verb, asked.resource, asked.subresource
        return self._index.get(key) or self._candidates(key)

    def _candidates(self, key: tuple[Scope, str, str, str]) -> _Candidates:
        """The rules about a kind of request, which are remembered."""
        scope, *kind = key
        about = [
            count for count in self._counts.values() if count.rule.scope == scope and _is_about(count.rule.match, *kind)
        ]
        names = {count.rule.match.name for count in about} - {None}
        candidates = _Candidates(
            {str(name): [count for count in about if count.rule.match.name in (None, name)] for name in names},
            [count for count in about if count.rule.match.name is None],
        )
        if len(self._index) >= MAX_INDEXED:
            self._index.clear()
        self._index[key] = candidates
        return candidates

    def _counts_in(self, count: _Count, now: datetime) -> bool:
        """Count a request that a rule matches, and say whether the rule hits it."""
        limits = count.rule.limits
        if not _is_on(count, now):
            return False
        count.matched += 1
        if limits.nth and count.matched != limits.nth:
            return False
        if count.matched % limits.every or (limits.times and count.hit >= limits.times):
            return False
        if limits.probability < 1 and chance(self.seed, count.rule.name, count.matched) >= limits.probability:
            return False
        count.hit += 1
        return True


def chance(seed: int, rule: str, number: int) -> float:
    """A number from 0 up to 1, which looks random and is always the same one."""
    digest = hashlib.blake2b(f"{seed}/{rule}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _since(moment: float | datetime, added: datetime) -> datetime:
    return moment if isinstance(moment, datetime) else added + timedelta(seconds=moment)


def _is_whole(match: Match, asked: Asked) -> bool:
    return match.name is None and match.namespace in (None, asked.namespace)


def _is_on(count: _Count, now: datetime) -> bool:
    """Whether it is the time of a rule."""
    if not count.is_armed:
        return False
    since, until = count.rule.limits.since, count.rule.limits.until
    if since and not _since(since, count.added) <= now:
        return False
    return until is None or now < _since(until, count.added)


def _is_about(match: Match, verb: str, resource: str, subresource: str) -> bool:
    return (
        verb in match.verbs
        and match.resource in (None, resource)
        and (match.subresource is None or match.subresource == subresource)
    )


def _matches(match: Match, asked: Asked) -> bool:
    """Whether a request has what is not in the index."""
    return (match.namespace is None or match.namespace == asked.namespace) and _fits_client(match, asked)


def _fits_client(match: Match, asked: Asked) -> bool:
    return _fits(match.user, asked.user) and _fits(match.agent, asked.agent)


def _fits(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is None or pattern.fullmatch(text) is not None
