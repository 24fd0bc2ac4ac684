"""Compares an answer with a recorded one, where some values differ from server to server.

Uids, resourceVersions, times and continue tokens are compared by presence and type. The values of the server under
test replace the recorded ones in later requests and answers:

    recorded answer   {"uid": "1b2f…", "resourceVersion": "812"}
    actual answer     {"uid": "9c0d…", "resourceVersion": "7"}
    recorded request  PUT {"resourceVersion": "812"}  ->  sent as {"resourceVersion": "7"}

Conditions, causes, managedFields and the errors within one message are compared without regard to their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

VOLATILE = frozenset({
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "lastTransitionTime", "continue",
    "storageVersionHash", "renewTime", "acquireTime",
})  # fmt: skip
UNORDERED = frozenset({"conditions", "causes", "managedFields"})
STANDARD_TEXT = "<standard text>"  # in recordings: a description copied from the reference, which is not compared
_MASKS = tuple(
    (re.compile(pattern), placeholder)
    for pattern, placeholder in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r'(resourceVersion\\?"?: ?\\?")\d+', r"\1<rv>"),
        (r"selfType\d+", "selfType"),
        (r"(current: |record \(|too old resource version: \d+ \()\d+", r"\1<rv>"),
        (r"(127\.0\.0\.1:)\d+(->)", r"\1<port>\2"),
    )
)
_AGE = re.compile(r"(\d+[smhdy])+\Z")  # the age in a table: 5s, 3d4h, 6y325d


class ConversationComparison:
    """The state of one conversation: the recorded values and the server's values that correspond to them."""

    def __init__(self, case: dict[str, Any], ignored: frozenset[str]) -> None:
        self.ignored = ignored
        self._values: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        text = json.dumps([step.get("body") for step in case["steps"]])
        prefixes = set(re.findall(r'"generateName": *"([^"]+)"', text))
        self._generated = [re.compile(re.escape(prefix) + r"[a-z0-9]{5}\b") for prefix in prefixes]

    def learn(self, recorded: Any, actual: Any) -> None:
        """Remember which values of this server correspond to the recorded ones."""
        if isinstance(recorded, dict) and isinstance(actual, dict):
            for name, old in recorded.items():
                if name in actual:
                    self._learn_one(name, old, actual[name], recorded)
        elif isinstance(recorded, list) and isinstance(actual, list):
            for old, new in zip(recorded, actual, strict=False):
                self.learn(old, new)

    def _learn_one(self, name: str, old: Any, new: Any, recorded: dict[str, Any]) -> None:
        """One field of an object in the recording."""
        generated = bool(recorded.get("generateName"))
        if not isinstance(old, str) or not isinstance(new, str):
            self.learn(old, new)
        elif name == "resourceVersion":
            if old not in ("", "0") and ("uid" in recorded or old not in self._versions):
                self._versions[old] = new  # that of an object; a list may have a newer one, of another write
        elif old and (name in ("uid", "continue") or (name == "name" and generated and old != new)):
            self._values[old] = new

    def translate(self, value: Any) -> Any:
        """Replace recorded values by the corresponding ones of this server."""
        if isinstance(value, dict):
            return {
                name: self._versions.get(item, item)
                if name == "resourceVersion" and isinstance(item, str)
                else self.translate(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self.translate(item) for item in value]
        if not isinstance(value, str):
            return value
        for old, new in self._values.items():
            value = value.replace(old, new)
        value = re.sub(r"resourceVersion=(\d+)", lambda m: f"resourceVersion={self._versions.get(m[1], m[1])}", value)
        quoted = r'("resourceVersion":\s*")(\d+)(")'
        return re.sub(quoted, lambda m: m[1] + self._versions.get(m[2], m[2]) + m[3], value)

    def mask(self, text: str) -> str:
        """Replace uids, times, revisions, ports and generated names within a text by placeholders."""
        for pattern, placeholder in _MASKS:
            text = pattern.sub(placeholder, text)
        for pattern in self._generated:
            text = pattern.sub("<generated>", text)
        return text

    def differences(self, recorded: Any, actual: Any, path: str = "") -> Iterator[str]:
        """One line for every difference that counts."""
        name = path.rpartition(".")[2]
        if name in VOLATILE:
            if (recorded in (None, "")) != (actual in (None, "")) or type(recorded) is not type(actual):
                yield f"{path}: expected {recorded!r:.80}, got {actual!r:.80}"
        elif isinstance(recorded, dict) and isinstance(actual, dict):
            for key in sorted((recorded.keys() | actual.keys()) - self.ignored):
                if key not in actual:
                    yield f"{path}.{key}: missing (expected {recorded[key]!r:.160})"
                elif key not in recorded:
                    yield f"{path}.{key}: unexpected {actual[key]!r:.160}"
                else:
                    yield from self.differences(recorded[key], actual[key], f"{path}.{key}")
        elif isinstance(recorded, list) and isinstance(actual, list):
            if name in UNORDERED and len(recorded) == len(actual):
                recorded, actual = sorted(recorded, key=_sort_key), sorted(actual, key=_sort_key)
            if len(recorded) != len(actual):
                yield f"{path}: expected {len(recorded)} items, got {len(actual)}: {json.dumps(actual)[:200]}"
            for n, (old, new) in enumerate(zip(recorded, actual, strict=False)):
                yield from self.differences(old, new, f"{path}[{n}]")
        elif isinstance(recorded, str) and isinstance(actual, str):
            yield from self._text_differences(recorded, actual, path, name)
        elif recorded != actual or type(recorded) is not type(actual):
            yield f"{path}: expected {recorded!r:.200}, got {actual!r:.200}"

    def _text_differences(self, recorded: str, actual: str, path: str, name: str) -> Iterator[str]:
        if name == "description" and recorded == STANDARD_TEXT:
            return
        old, new = self.mask(self.translate(recorded)), self.mask(actual)
        if old != new and not (_AGE.match(old) and _AGE.match(new)) and _words(old) != _words(new):
            yield f"{path}: expected {old!r:.600}\n            got      {new!r:.600}"


def _sort_key(item: Any) -> str:
    stable = {name: value for name, value in item.items() if name not in VOLATILE} if isinstance(item, dict) else item
    return json.dumps(stable, sort_keys=True)


def _words(message: str) -> list[str]:
    """The words of a message, sorted: the reference lists several errors in no fixed order."""
    return sorted(word for word in re.split(r"[\[\],;\s]+", message) if word)
