"""`python -m noxu` is the `noxu` command."""

from noxu.apiserver.cli import command

command()
