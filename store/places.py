"""Where things live.

Tools are the user's own work and lie under `~/.albert/tools`, where they are easily found, read and put under
version control. Configuration, caches and state follow the platform's customs. `ALBERT_HOME` moves
`~/.albert` and takes all the others with it, so that one variable gives a whole, separate home (for a test, a
project, a service).

Nothing is created by asking where it is; a folder is made, readable by its owner only, when something is
first written there. `platformdirs` takes tens of milliseconds to import and running a saved tool needs none
of its answers, so it is imported by the first property that does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure

#: Folders that are made here belong to one user.
FOLDER_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Homes:
    """The four folders. `albert` is `~/.albert` or what `ALBERT_HOME` says; `moved` tells which."""

    albert: Path
    moved: bool = False

    @classmethod
    def resolve(cls, environ: Mapping[str, str] | None = None) -> Homes:
        """Read `ALBERT_HOME` and `HOME` from `environ` (the process's own by default). Touches no disk.

        An empty `ALBERT_HOME` counts as none; a relative one is taken from the current folder.

        Raises:
            Failure: `io_error` when the home folder can't be told.
        """
        values = os.environ if environ is None else environ
        moved = values.get("ALBERT_HOME", "")
        try:
            if moved and moved != "~" and not moved.startswith("~/"):
                return cls(Path(os.path.abspath(moved)), moved=True)
            home = Path(values["HOME"]) if values.get("HOME") else Path.home()
            return cls(home / moved[2:], moved=True) if moved else cls(home / ".albert")
        except (RuntimeError, OSError) as error:
            raise Failure(
                "io_error",
                f"can't tell where the home folder is: {error}",
                hint="set HOME, or set ALBERT_HOME to an absolute path",
            ) from error

    @property
    def tools(self) -> Path:
        """Saved tools."""
        return self.albert / "tools"

    @property
    def config(self) -> Path:
        """What the user writes: `governance.yaml` and the like."""
        if self.moved:
            return self.albert / "config"
        import platformdirs

        return platformdirs.user_config_path("albert")

    @property
    def cache(self) -> Path:
        """What can be derived again."""
        if self.moved:
            return self.albert / "cache"
        import platformdirs

        return platformdirs.user_cache_path("albert")

    @property
    def state(self) -> Path:
        """The log, runs and contents."""
        if self.moved:
            return self.albert / "state"
        import platformdirs

        return platformdirs.user_state_path("albert")


def make_folder(folder: Path) -> Path:
    """Make `folder` and the missing ones above it, each with mode 0700 and each durable; return it.

    Raises:
        Failure: `io_error` when a file stands in the way or the system refuses.
    """
    try:
        _make(folder)
    except OSError as error:
        raise io_failure("make the folder", folder, error) from error
    return folder


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make(folder.parent)
    try:
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return  # somebody else was faster
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created in or renamed into `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
