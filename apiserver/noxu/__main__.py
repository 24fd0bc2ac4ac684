"""The `noxu` command, also as `python -m noxu`. Until it runs, Ctrl-C ends the process without a traceback."""

import gc
import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command sets it again

gc.disable()  # modules live until the end: they need not be examined. The command enables it

from noxu.cli import command as command  # noqa: E402

if __name__ == "__main__":
    command()
