"""What commands in simulated pods answer."""

from __future__ import annotations

from noxu.workloads.kubelet.commands import CommandResult, CommandRule, Commands
from tests.rows import rows

PLUGINS = CommandResult("[E*] rabbitmq_management\n")
NOT_READY = CommandResult(stderr="no response\n", code=2)
ANY = CommandResult("any")
SUCCEEDED = CommandResult()
RULES = (
    CommandRule("*", (), ANY),
    CommandRule("rabbit-*", ("rabbitmq-plugins",), PLUGINS),
    CommandRule("shop/db-*", ("pg_isready",), NOT_READY, exact=True),
    CommandRule("shop/db-*", ("sh", "-c", "*isready *-h db*"), NOT_READY),
)


@rows(
    "pod, command, expected",
    [
        ("default/rabbit-0", "rabbitmq-plugins", PLUGINS),
        ("default/rabbit-0", "rabbitmq-plugins list -e", PLUGINS),
        ("default/rabbit-0", "rabbitmq-pluginsx", ANY),
        ("default/rabbit", "rabbitmq-plugins", ANY),
        ("shop/db-0", "pg_isready", NOT_READY),
        ("shop/db-0", "pg_isready -q", ANY),
        ("other/db-0", "pg_isready", ANY),
        ("shop/dbx0", "pg_isready", ANY),
        ("shop/web", "", ANY),
        ("shop/db-0", "sh|-c|/bin/pg_isready -U app -h db-0", NOT_READY),
        ("shop/db-0", "sh|-c|/bin/pg_isready -U app", ANY),
    ],
)
def test_the_newest_rule_that_fits_counts(pod: str, command: str, expected: CommandResult) -> None:
    commands = Commands()
    for rule in RULES:
        commands.add(rule)
    namespace, _, name = pod.partition("/")
    assert commands.result(namespace, name, command.split("|" if "|" in command else None)) == expected


def test_a_command_that_no_rule_answers_is_refused_unless_there_is_a_result_for_all_others() -> None:
    rule = CommandRule("web", ("true",), ANY)
    for otherwise in (None, SUCCEEDED):
        commands = Commands(otherwise)
        commands.add(rule)
        assert commands.result("default", "web", ["false"]) == otherwise
        assert commands.result("default", "web", ["true"]) == ANY


def test_a_rule_replaces_one_for_the_same_pods_and_command() -> None:
    commands = Commands()
    for result in (ANY, NOT_READY):
        commands.add(CommandRule("web", ("true",), result))
        commands.add(CommandRule("web", ("true",), result, exact=True))
    assert [rule.result for rule in commands.rules] == [NOT_READY, NOT_READY]
