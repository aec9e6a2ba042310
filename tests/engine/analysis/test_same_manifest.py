"""The manifest of a source does not depend on the order of sets in memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import json
import pytest
from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from tests.helpers.generated_tools import generated_tools

lists = "".join(f"    b{i} = ['q{i}', s + '{i}']\\n    a.append(b{i})\\n" for i in range(30))
send = "    tools.write_file(path=a[0][0], content=a[0][1])\\n"
source = f'def t(s: str) -> None:\\n    \\"\\"\\"Write.\\"\\"\\"\\n    a = []\\n{lists}{send}'
print(json.dumps(analyse(check_or_raise(source, generated_tools(0))).as_dict(), sort_keys=True))
"""


@pytest.mark.slow
def test_each_process_finds_the_same_manifest() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
