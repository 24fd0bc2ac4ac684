"""The `noxu` command, also as `python -m noxu`. Until it runs, Ctrl-C ends the process without a traceback."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command sets it again

from noxu import garbage

garbage.postpone()  # until the command is imported

from noxu.cli import command as command  # noqa: E402

if __name__ == "__main__":
    command()
