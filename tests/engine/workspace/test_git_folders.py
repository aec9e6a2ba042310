"""What the service reads in git folders, which a command may have made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace.git_folders import repositories


def test_the_service_does_not_wait_for_a_pipe_in_a_git_folder(tmp_path: Path) -> None:
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    os.mkfifo(tmp_path / "commondir")
    # In a process of its own: a wait would never end.
    code = (
        "import sys\n"
        "from albert_tools.engine.workspace.git_folders import family, repositories\n"
        "assert repositories(sys.argv[1]).git_folders == [sys.argv[1]]\n"
        "assert family(sys.argv[1], sys.argv[1]) == [sys.argv[1]]\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=False).returncode == 0


def test_folders_that_are_too_deep_are_refused_in_plain_words(tmp_path: Path) -> None:
    deep = str(tmp_path)
    for _ in range(501):
        deep += "/a"
        os.mkdir(deep)
    with pytest.raises(Failure, match="folders more than 500 deep") as refused:
        repositories(str(tmp_path))
    assert refused.value.code == "too_large"
    assert refused.value.hint == "delete them: they are in 'a'"
    os.rmdir(deep)
    assert repositories(str(tmp_path)) == ([], [])
