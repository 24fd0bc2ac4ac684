"""The command line of kube-apiserver: pflag's forms and errors."""

from __future__ import annotations

import pytest

from noxu.envtest.flags import FlagError, parse
from tests.rows import rows

READ = {
    "a value after =": (["--secure-port=1"], {"secure-port": ["1"]}),
    "a value as the next word": (["--secure-port", "1"], {"secure-port": ["1"]}),
    "a value that begins with a dash": (["--bind-address", "-1"], {"bind-address": ["-1"]}),
    "one dash": (["-secure-port", "1"], {"secure-port": ["1"]}),
    "an underscore": (["--secure_port=1"], {"secure-port": ["1"]}),
    "an empty value": (["--cert-dir="], {"cert-dir": [""]}),
    "a boolean without a value": (["--allow-privileged", "--profiling=false"], {"allow-privileged": ["true"], "profiling": ["false"]}),
    "a boolean as the last word": (["--secure-port=1", "--allow-privileged"], {"secure-port": ["1"], "allow-privileged": ["true"]}),
    "the values of a list": (["--authorization-mode=Node,RBAC"], {"authorization-mode": ["Node", "RBAC"]}),
    "a list in several flags": (["--etcd-servers=a,b", "--etcd-servers", "c"], {"etcd-servers": ["a", "b", "c"]}),
    "a quoted value of a list": (['--feature-gates="A=true,B=false",C=true'], {"feature-gates": ["A=true,B=false", "C=true"]}),
    "an empty list": (["--disable-admission-plugins="], {"disable-admission-plugins": []}),
    "values with commas of their own": (["--service-account-issuer=a,b"], {"service-account-issuer": ["a,b"]}),
    "a flag that is repeated": (["--cert-dir=a", "--cert-dir=b"], {"cert-dir": ["a", "b"]}),
    "the verbosity in short": (["-v", "4"], {"v": ["4"]}),
    "the verbosity in one word": (["-v4", "-v=5", "--v=6"], {"v": ["4", "5", "6"]}),
    "an insecure port that is switched off": (["--insecure-port=0"], {"insecure-port": ["0"]}),
    "nothing after --help": (["--help", "--nope", "word"], {"help": ["true"]}),
    "nothing after --version": (["--version=raw", "word"], {"version": ["raw"]}),
    "a hexadecimal number": (["--secure-port=0x10"], {"secure-port": ["0x10"]}),
}  # fmt: skip


@rows(("words", "values"), READ.values(), ids=READ)
def test_flags_are_read(words: list[str], values: dict[str, list[str]]) -> None:
    assert parse(words).values == values


REFUSED = {
    "no value": (["--secure-port"], "flag needs an argument: --secure-port"),
    "no value in short": (["-v"], "flag needs an argument: 'v' in -v"),
    "no number": (
        ["--secure-port=x"],
        'invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax',
    ),
    "a number that is too large": (
        ["--v=9223372036854775808"],
        'invalid argument "9223372036854775808" for "-v, --v" flag: '
        'strconv.ParseInt: parsing "9223372036854775808": value out of range',
    ),
    "no boolean": (
        ["--allow-privileged=maybe"],
        'invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ),
    "no duration": (
        ["--event-ttl=1"],
        'invalid argument "1" for "--event-ttl" flag: time: missing unit in duration "1"',
    ),
    "a word after a boolean": (
        ["--allow-privileged", "true"],
        '"kube-apiserver" does not take any arguments, got ["true"]',
    ),
    "words after --": (["--", "--v"], '"kube-apiserver" does not take any arguments, got ["--v"]'),
    "a flag without a name": (["--=1"], "bad flag syntax: --=1"),
    "three dashes": (["---v"], "bad flag syntax: ---v"),
    "an insecure port": (
        ["--insecure-port=8080"],
        "--insecure-port is not available: kube-apiserver has had no insecure port since 1.24",
    ),
    "a webhook for users": (
        ["--authentication-token-webhook-config-file=f"],
        "--authentication-token-webhook-config-file is not available: this server asks no webhook about users and access",
    ),
}


@rows(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_a_command_line_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(FlagError) as refused:
        parse(words)
    assert str(refused.value) == message


UNKNOWN = {
    "with a value": (["--nope=1"], {}),
    "with the next word as its value": (["--nope", "word"], {}),
    "before a flag": (["--nope", "--v=1"], {"v": ["1"]}),
    "at the end": (["--v=1", "--nope"], {"v": ["1"]}),
}


@pytest.mark.parametrize(("words", "values"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_flag_is_reported_and_has_no_effect(words: list[str], values: dict[str, list[str]]) -> None:
    found = parse(words)
    assert found.values == values
    assert found.notes == ["unknown flag: --nope; it has no effect"]


def test_values_are_read_by_type() -> None:
    found = parse(["--event-ttl=1m30s", "--secure-port=1", "--secure-port=2", "--anonymous-auth=f", "--cert-dir=a"])
    assert found.seconds("event-ttl", 0) == 90
    assert found.number("secure-port", 6443) == 2
    assert not found.is_set("anonymous-auth", default=True)
    assert found.is_set("service-account-lookup", default=True)
    assert found.last("cert-dir") == "a"
    assert found.last("client-ca-file", "none") == "none"
    assert found.all("etcd-servers") == ()
