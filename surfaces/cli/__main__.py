"""``python -m albert_tools.surfaces.cli``."""

from __future__ import annotations

import sys

from albert_tools.surfaces.cli.main import main

sys.exit(main())
