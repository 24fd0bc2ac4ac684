"""Which types may stand for which, and what type parameters stand for (cel-go's checker/types.go and mapping.go)."""

from __future__ import annotations

from noxu.cel.types.types import DYN, Kind, Type, is_dyn_or_error, param


class Substitution:
    """The types bound to type parameters so far (cel-go's mapping).

        assignable(list(A), list(int))   →   True, and A is bound to int

    An attempt that fails leaves the bindings unchanged.
    """

    __slots__ = ("bound", "fresh")

    def __init__(self) -> None:
        self.bound: dict[str, Type] = {}
        self.fresh = 0

    def new_param(self) -> Type:
        self.fresh += 1
        return param(f"_var{self.fresh - 1}")

    def resolve(self, type_: Type, *, unbound_as_dyn: bool = False) -> Type:
        """The type with its bound parameters replaced."""
        if not type_.generic:
            return type_
        if type_.kind is Kind.PARAM:
            known = self.bound.get(type_.name)
            if known is not None:
                return self.resolve(known, unbound_as_dyn=unbound_as_dyn)
            return DYN if unbound_as_dyn else type_
        params = tuple(self.resolve(inner, unbound_as_dyn=unbound_as_dyn) for inner in type_.params)
        return Type(type_.kind, type_.name, params, type_.declaration)

    def assignable(self, to: Type, given: Type) -> bool:
        """Whether `given` may stand where `to` is expected. Binds parameters if so."""
        if not to.generic and not given.generic:
            return self._assignable(to, given)
        before = self.bound.copy()
        if self._assignable(to, given):
            return True
        self.bound = before
        return False

    def all_assignable(self, to: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        if len(to) != len(given):
            return False
        before = self.bound.copy()
        if all(self._assignable(left, right) for left, right in zip(to, given, strict=True)):
            return True
        self.bound = before
        return False

    def _assignable(self, left: Type, right: Type) -> bool:
        if right.kind is Kind.PARAM:
            valid, substituted = self._bind(left, right)
            if valid:
                return True
            if substituted:
                return False
        if left.kind is Kind.PARAM:
            return self._bind(right, left)[0]
        if is_dyn_or_error(left) or is_dyn_or_error(right):
            return True
        if left.kind is Kind.NULL:
            return _accepts_null(right)
        if right.kind is Kind.NULL:
            return _accepts_null(left)
        if left.kind is Kind.TYPE:
            return right.kind is Kind.TYPE
        if left.kind is not right.kind or left.name != right.name:
            return False
        if len(left.params) != len(right.params):
            return False
        return all(self._assignable(a, b) for a, b in zip(left.params, right.params, strict=True))

    def _bind(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Let `parameter` stand for the type: (whether it may, whether it was bound before)."""
        if type_ == parameter:
            return True, True
        known = self.bound.get(parameter.name)
        if known is not None:
            if type_ == known:
                return True, True
            if not self._assignable(type_, known):
                return False, True
            general = most_general(type_, known)
            if self._independent(parameter, general):
                self.bound[parameter.name] = general
            return True, True
        if self._independent(parameter, type_):
            self.bound[parameter.name] = type_
            return True, False
        return False, False

    def _independent(self, parameter: Type, within: Type) -> bool:
        """Whether `parameter` does not occur in `within`."""
        if parameter == within:
            return False
        if within.kind is Kind.PARAM:
            known = self.bound.get(within.name)
            return known is None or self._independent(parameter, known)
        return all(self._independent(parameter, inner) for inner in within.params)


def _accepts_null(type_: Type) -> bool:
    return (type_.nullable_wrapper and not type_.params) or type_.kind in (
        Kind.NULL,
        Kind.OPAQUE,
        Kind.STRUCT,
        Kind.DURATION,
        Kind.TIMESTAMP,
    )


def most_general(left: Type, right: Type) -> Type:
    return left if _equal_or_less_specific(left, right) else right


def _equal_or_less_specific(left: Type, right: Type) -> bool:
    if left.kind in (Kind.DYN, Kind.PARAM):
        return True
    if right.kind in (Kind.DYN, Kind.PARAM) or left.kind is not right.kind:
        return False
    if left.kind in (Kind.OPAQUE, Kind.LIST, Kind.MAP):
        if left.name != right.name or len(left.params) != len(right.params):
            return False
        return all(_equal_or_less_specific(a, b) for a, b in zip(left.params, right.params, strict=True))
    return left.kind is Kind.TYPE or left == right
