"""`python -m noxu` is the `noxu` command."""

import sys

from noxu.apiserver.cli import main

sys.exit(main())
