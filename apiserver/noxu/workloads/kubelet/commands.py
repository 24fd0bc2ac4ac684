"""What commands in simulated pods answer: rules, of which the newest that fits counts.

    CommandRule("web-*", ("rabbitmq-plugins", "list"), CommandResult("[E*] rabbitmq_management\\n"))
    CommandRule("shop/db-0", ("pg_isready",), CommandResult(code=2), exact=True)
    CommandRule("yb-master-0", ("bash", "-c", "*get_universe_config"), CommandResult("{}"))

`pods` is the name of a pod, or NAMESPACE/NAME. `command` is how a command begins, or with `exact` all of it; () is any command.
* stands for any text, in a name and in a word: a shell gets its command in one word. Nothing runs: a command that no rule answers is refused, unless there is a result for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from noxu.api.names import is_like, is_named_like


class CommandResult(NamedTuple):
    """What a command has written, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


class CommandRule(NamedTuple):
    """See the module."""

    pods: str
    command: tuple[str, ...]
    result: CommandResult
    exact: bool = False

    def fits(self, namespace: str, name: str, command: Sequence[str]) -> bool:
        words = command if self.exact else command[: len(self.command)]
        begins = len(words) == len(self.command) and all(map(is_like, self.command, words))
        return begins and is_named_like(self.pods, namespace, name)


class Commands:
    """The rules of a server. `otherwise`: what all other commands answer; None: they are refused."""

    def __init__(self, otherwise: CommandResult | None = None) -> None:
        self.otherwise = otherwise
        self.rules: list[CommandRule] = []

    def add(self, rule: CommandRule) -> None:
        """It replaces one for the same pods and the same command."""
        self.rules = [*(old for old in self.rules if old._replace(result=rule.result) != rule), rule]

    def result(self, namespace: str, name: str, command: Sequence[str]) -> CommandResult | None:
        """What a command in a pod answers; None: it is refused."""
        return next(
            (rule.result for rule in reversed(self.rules) if rule.fits(namespace, name, command)), self.otherwise
        )

    def inherit(self, before: Commands) -> None:
        """Have the rules that were added to others."""
        self.rules = list(before.rules)


def of(exec_: str) -> Commands:
    """Those of `--exec`: "succeed" or ""."""
    return Commands(CommandResult() if exec_ == "succeed" else None)
