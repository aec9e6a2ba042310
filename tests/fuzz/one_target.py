"""``python -m tests.fuzz.one_target NAME …``: runs one target until it fails, or for ``-max_total_time`` seconds.

The other arguments are those of libFuzzer. The modules are instrumented when they are imported, so nothing is imported before.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["albert_tools"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Run the target that the first argument names."""
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
