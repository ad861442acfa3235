"""`python -m nearly` is the command line."""

from __future__ import annotations

import sys

from nearly.cli.main import main

sys.exit(main())
