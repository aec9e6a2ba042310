"""The language server in a real editor, with the settings of docs/editors.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.conftest import ROOT, Albert

SCRIPT = Path(__file__).with_name("neovim.lua")
#: Neovim has `vim.lsp.start` since 0.8.
OLDER = """
vim.lsp.start = vim.lsp.start or function(config)
  vim.lsp.buf_attach_client(0, vim.lsp.start_client(config))
end
"""


@pytest.mark.surfaces
def test_a_source_in_neovim(albert: Albert, tmp_path: Path) -> None:
    neovim = shutil.which("nvim")
    assert neovim is not None, "the tests of the surfaces need Neovim; `make test-surfaces` says how to install it"
    (settings,) = re.findall(r"```lua\n(.*?)```", (ROOT / "docs" / "editors.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "init.lua").write_text(OLDER + settings, encoding="utf-8")
    albert.write(
        "t.tool",
        'def t(path: str) -> str:\n    """Read."""\n'
        '    a = "\U0001f600é" + tools.read_flie(path=path)\n    return json.dumps(a)\n',
    )
    done = subprocess.run(
        [*f"{neovim} --headless -n -i NONE -u".split(), tmp_path / "init.lua", "t.tool", "-c", f"luafile {SCRIPT}"],
        cwd=albert.project,
        env={
            **albert.environ,
            **{f"XDG_{kind}_HOME": str(tmp_path) for kind in ("CACHE", "CONFIG", "DATA", "STATE")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SHOWN": str(tmp_path / "shown.json"),
        },
        capture_output=True,
        timeout=200,
        check=False,
    )
    shown = json.loads((tmp_path / "shown.json").read_text("utf-8"))
    hover = shown.pop("hover")
    assert shown == {
        "before": [
            # Neovim's columns are bytes, whatever the encoding of the protocol.
            [
                2,
                19,
                2,
                34,
                "unknown-tool",
                "no tool named 'read_flie'; did you mean 'read_file'?\nhelp: write tools.read_file",
            ],
            [3, 11, 3, 15, "unknown-name", "the module 'json' is used but not imported\nhelp: add: import json"],
        ],
        "after": [],
        "text": [
            "import json",
            "def t(path: str) -> str:",
            '    """Read."""',
            '    a = "\U0001f600é" + tools.read_file(path=path)',
            "    return json.dumps(a)",
        ],
        "names": ["move_file"],
    }, done.stderr.decode()
    assert hover.startswith("read_file(path: str, ")
