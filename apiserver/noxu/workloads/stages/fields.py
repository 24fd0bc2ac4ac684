"""The fields of a document, which are read once each: what is misspelt, missing or of another type is a fault with its path.

fields = DocumentFields(value, "spec.delay", faults)
seconds = fields.integer("durationMilliseconds")
fields.end()                                        # what was not read is not known
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from noxu.features import meant
from noxu.values import Json

T = TypeVar("T")


class DocumentFaults(list[str]):
    """What is wrong, as sentences that begin with a path."""

    def add(self, path: str, why: str) -> None:
        self.append(f"{path}: {why}")

    def read(self, path: str, read: Callable[[Any], T], value: Json, otherwise: T) -> T:
        """A value as it is read; `otherwise` if that raises ValueError."""
        try:
            return read(value)
        except ValueError as error:
            self.add(path, str(error))
            return otherwise


class DocumentFields:
    """Those of an object. A value that is null is not there."""

    def __init__(self, value: Json, path: str, faults: DocumentFaults) -> None:
        self.path, self.faults = path, faults
        if not isinstance(value, dict):
            faults.add(path or ".", "it is an object")
            value = {}
        self._left = {name: each for name, each in value.items() if each is not None}
        self._known: list[str] = []

    def place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Json:
        self._known.append(name)
        return self._left.pop(name, None)

    def _of_type(self, name: str, type_: type[Any], what: str, otherwise: Any) -> Any:
        value = self.take(name)
        if value is None:
            return otherwise
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            self.faults.add(self.place(name), f"it is {what}")
            return otherwise
        return value

    def text(self, name: str, otherwise: str = "") -> str:
        return str(self._of_type(name, str, "a text", otherwise))

    def required(self, name: str) -> str:
        found = self.text(name)
        if not found and not self.faults:
            self.faults.add(self.place(name), "it is required")
        return found

    def chosen(self, name: str, among: Collection[str], otherwise: str = "") -> str:
        """One of some texts, or `otherwise` if it is not there."""
        found = self.text(name, otherwise)
        if found not in (*among, otherwise):
            self.faults.add(self.place(name), f"{found!r} is none of {', '.join(among)}")
        return found

    def boolean(self, name: str) -> bool:
        return bool(self._of_type(name, bool, "true or false", otherwise=False))

    def integer(self, name: str, otherwise: int | None = None) -> int | None:
        found: int | None = self._of_type(name, int, "an integer", otherwise)
        if found is not None and found < 0:
            self.faults.add(self.place(name), "it is not negative")
        return found

    def texts(self, name: str) -> dict[str, str]:
        """An object of texts."""
        found = self._of_type(name, dict, "an object of texts", {})
        if any(not isinstance(each, str) for each in found.values()):
            self.faults.add(self.place(name), "it is an object of texts")
            return {}
        return dict(found)

    def words(self, name: str) -> Sequence[str]:
        """A text, or a list of texts."""
        value = self.take(name)
        values = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(values, list) or any(not isinstance(each, str) for each in values):
            self.faults.add(self.place(name), "it is a text, or a list of texts")
            return ()
        return values

    def inner(self, name: str) -> DocumentFields | None:
        """Those of an object in a field; None: it is not there."""
        value = self.take(name)
        return None if value is None else DocumentFields(value, self.place(name), self.faults)

    def items(self, name: str) -> Iterator[DocumentFields]:
        """Those of the objects of a list."""
        for number, each in enumerate(self._of_type(name, list, "a list", [])):
            yield DocumentFields(each, f"{self.place(name)}[{number}]", self.faults)

    def parsed(self, name: str, read: Callable[[str], T], otherwise: T) -> T:
        """A text as it is read; `otherwise` if it is not there."""
        text = self.text(name)
        return self.faults.read(self.place(name), read, text, otherwise) if text else otherwise

    def refuse(self, name: str, why: str) -> None:
        """A field that exists elsewhere, and is not supported."""
        if self.take(name) is not None:
            self.faults.add(self.place(name), why)

    def end(self) -> None:
        for name in self._left:
            self.faults.add(self.place(name), f"there is no such field{meant(name, self._known)}")
