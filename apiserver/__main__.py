"""`python -m apiserver` is the `noxu` command."""

import sys

from apiserver.cli import main

sys.exit(main())
