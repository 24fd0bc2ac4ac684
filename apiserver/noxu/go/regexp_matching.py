"""Matching by a program of `regexp_program`, in time of pattern times text, where RE2 is absent.

Whether a pattern matches says a deterministic automaton that is made while it is used. A state is the set of
instructions that wait for a character, and what the last character was, if a `\\b` or `^` waits too. It is a dict from
characters to states, so a known character costs one look-up. For `a(b|c)d`, which is found anywhere (0 always waits):

    {0} -a→ {0 1 4} -b→ {0 6} -d→ found

An automaton keeps a bounded number of states; when there are more, it begins again. Then each character visits each
instruction at most once, which is also what the search for positions does (Pike's machine): it keeps its threads in the
order of preference, each with the place where it began.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from noxu.cpu_budget import spend
from noxu.go.regexp_program import (
    ASSERT,
    BEGIN_LINE,
    BEGIN_TEXT,
    END_LINE,
    END_TEXT,
    JUMP,
    MATCH,
    SET,
    SPLIT,
    WORD,
    Program,
)

MAX_STATES: Final = 256
MAX_WEIGHT: Final = 16_384
"""Instructions and transitions in all states of an automaton."""

VISITS_PER_UNIT: Final = 2
"""Visits of instructions in a microsecond."""
VISITS_PER_SPEND: Final = 4096
"""Visits between two calls of `spend` at most."""

_EDGE, _NEWLINE, _LETTER, _OTHER = range(4)
"""What is before or after a place: nothing, a line's end, a character of a word (ASCII), another one."""


class _State(dict[str | int, "_State"]):
    """Transitions: by ASCII character, and by interval of other characters (see `_interval`)."""

    __slots__ = ("automaton", "before", "matches_at_end", "waiting")

    def __init__(self, automaton: Automaton, waiting: tuple[int, ...], before: int) -> None:
        super().__init__()
        self.automaton = automaton
        self.waiting = waiting
        self.before = before
        self.matches_at_end: bool | None = None

    def __missing__(self, key: str | int) -> _State:
        assert isinstance(key, str)
        if key < "\x80":
            state = self[key] = self.automaton.after(self, key)
            return state
        interval = self.automaton.interval(key)
        known = self.get(interval)
        if known is None:
            known = self[interval] = self.automaton.after(self, key)
        return known


class Automaton:
    """A program, and the states that its searches needed so far."""

    def __init__(self, program: Program) -> None:
        self._code = program.code
        self._sets = [tuple(edge for low, high in ranges for edge in (low, high + 1)) for ranges in program.sets]
        self._edges = sorted({edge for edges in self._sets for edge in edges})
        self.size = len(program.code)
        self._states: dict[tuple[tuple[int, ...], int], _State] = {}
        self._starts: dict[int, _State] = {}
        self._weight = 0
        self._found = _State(self, (), _OTHER)

    def interval(self, char: str) -> int:
        """The number of the characters that belong to the same sets, as those between them do."""
        return bisect_right(self._edges, ord(char))

    def search(self, text: str, position: int = 0) -> bool:
        """Whether the pattern is found anywhere in the text, from a position on."""
        found = self._found
        before = _kind(text[position - 1]) if position else _EDGE
        state = self._starts.get(before)
        if state is None:
            state = self._starts[before] = self._state([0], before)
        for char in text[position:] if position else text:
            if state is found:
                return True
            if not state.waiting:
                return False
            state = state[char]
        if state.matches_at_end is None:
            state.matches_at_end = state is found or self._ends(state)
        return state.matches_at_end

    def _state(self, places: list[int], before: int) -> _State:
        waiting, asserts, matches = self._followed(places, before)
        if matches:
            return self._found
        key = (waiting, before if asserts else _OTHER)
        state = self._states.get(key)
        if state is None:
            self._weight += len(waiting) + 1
            if len(self._states) >= MAX_STATES or self._weight > MAX_WEIGHT:
                self._forget()
            state = self._states[key] = _State(self, *key)
        return state

    def _forget(self) -> None:
        states, self._states, self._weight = self._states, {}, 0
        self._starts.clear()
        for state in states.values():  # a search may still be at one of them
            state.clear()

    def _followed(self, places: list[int], before: int) -> tuple[tuple[int, ...], bool, bool]:
        """(SET and ASSERT instructions reached without a character, whether there is an ASSERT, whether MATCH is reached)."""
        code, visited, todo = self._code, set(places), list(places)
        waiting, asserts = [], False
        while todo:
            place = todo.pop()
            operation, x, y = code[place]
            if operation == SET:
                waiting.append(place)
                continue
            if operation == MATCH:
                return (), False, True
            if operation == ASSERT:
                if x != BEGIN_TEXT or before == _EDGE:  # else it never holds
                    waiting.append(place)
                    asserts = True
                continue
            for target in (place + x, place + y) if operation == SPLIT else (place + x,):
                if target not in visited:
                    visited.add(target)
                    todo.append(target)
                    if not len(visited) % VISITS_PER_SPEND:
                        spend(VISITS_PER_SPEND // VISITS_PER_UNIT)
        spend(len(visited) % VISITS_PER_SPEND // VISITS_PER_UNIT)
        waiting.sort()
        return tuple(waiting), asserts, False

    def after(self, state: _State, char: str) -> _State:
        """The state after one more character."""
        kind = _kind(char)
        waiting = self._resolved(state, kind)
        if waiting is None:
            return self._found
        code, sets, point = self._code, self._sets, ord(char)
        next_ = [place + 1 for place in waiting if bisect_right(sets[code[place][1]], point) & 1]
        spend(len(waiting) // VISITS_PER_UNIT)
        self._weight += 1
        return self._state([0, *next_], kind)

    def _ends(self, state: _State) -> bool:
        return self._resolved(state, _EDGE) is None

    def _resolved(self, state: _State, after: int) -> list[int] | None:
        """The SET instructions of a state, after its assertions are decided. None: MATCH is reached."""
        code, before = self._code, state.before
        sets = {place for place in state.waiting if code[place][0] == SET}
        asserted = [place for place in state.waiting if code[place][0] == ASSERT]
        seen = set(asserted)
        while asserted:
            holding = [place + 1 for place in asserted if _holds(code[place][1], before, after)]
            waiting, _, matches = self._followed(holding, before)
            if matches:
                return None
            sets |= {place for place in waiting if code[place][0] == SET}
            asserted = [place for place in waiting if code[place][0] == ASSERT and place not in seen]
            seen.update(asserted)
        return sorted(sets)

    def span(self, text: str, position: int) -> tuple[int, int] | None:
        """The leftmost match from a position on, and of those the preferred one."""
        if not self.search(text, position):
            return None
        code, sets = self._code, self._sets
        threads: list[tuple[int, int]] = []  # place, start; the preferred ones first
        best = None
        before = _kind(text[position - 1]) if position else _EDGE
        for at in range(position, len(text) + 1):
            after = _kind(text[at]) if at < len(text) else _EDGE
            if best is None:
                threads.append((0, at))
            waiting, match = self._preferred(threads, before, after)
            if match is not None:
                best = (match, at)
            if at == len(text) or (best is not None and not waiting):
                break
            point = ord(text[at])
            threads = [(place + 1, start) for place, start in waiting if bisect_right(sets[code[place][1]], point) & 1]
            before = after
        return best

    def _preferred(
        self, threads: list[tuple[int, int]], before: int, after: int
    ) -> tuple[list[tuple[int, int]], int | None]:
        """SET instructions in the order of preference, up to the MATCH; and the start of that match."""
        code, visited = self._code, bytearray(self.size)
        waiting: list[tuple[int, int]] = []
        visits = 0
        match = None
        for first, start in threads:
            todo = [first]
            while todo and match is None:
                place = todo.pop()
                if visited[place]:
                    continue
                visited[place] = 1
                visits += 1
                if not visits % VISITS_PER_SPEND:
                    spend(VISITS_PER_SPEND // VISITS_PER_UNIT)
                operation, x, y = code[place]
                if operation == SET:
                    waiting.append((place, start))
                elif operation == MATCH:
                    match = start
                elif operation == JUMP:
                    todo.append(place + x)
                elif operation == SPLIT:
                    todo += (place + y, place + x)
                elif _holds(x, before, after):
                    todo.append(place + 1)
            if match is not None:
                break
        spend(visits % VISITS_PER_SPEND // VISITS_PER_UNIT + 1)
        return waiting, match


def _kind(char: str) -> int:
    if char == "\n":
        return _NEWLINE
    return _LETTER if char.isascii() and (char.isalnum() or char == "_") else _OTHER


def _holds(assertion: int, before: int, after: int) -> bool:
    if assertion == BEGIN_TEXT:
        return before == _EDGE
    if assertion == END_TEXT:
        return after == _EDGE
    if assertion == BEGIN_LINE:
        return before in (_EDGE, _NEWLINE)
    if assertion == END_LINE:
        return after in (_EDGE, _NEWLINE)
    return ((before == _LETTER) != (after == _LETTER)) == (assertion == WORD)
