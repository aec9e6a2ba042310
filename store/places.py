"""The folders of a home.

Tools are the user's own work. They are in `~/.albert/tools`, where they are easy to find, to read and to put under version
control. Configuration, cache and state are in the standard folders of the platform. `ALBERT_HOME` replaces `~/.albert`, and then
all other folders are inside it. So one variable creates a separate home for a test, a project or a service.

`ALBERT_HOME` can also be the URL of a PostgreSQL database, which machines share. What is local to a machine (sockets, locks,
caches, chats) is then in a folder of its own below the standard folder for state.

These properties don't create the folders. A folder is created at its first write, with access only for its owner. Importing
`platformdirs` takes ten milliseconds, so it is imported where it is needed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.replace_file import make_folders
from albert_tools.store.os_errors import io_failure

#: The names of a home's small files.
RULES, MODE, MOUNTS = "governance.yaml", "mode.json", "mounts.json"
#: The environment variable that names the home with the tools of a team.
LIBRARY = "ALBERT_LIBRARY"


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|postgres(ql)?:")
_DATABASE = re.compile(r"postgres(ql)?://")
#: Passwords in a URL, as libpq reads it: after the user's name, and among the parameters.
_PASSWORDS = re.compile(r"(?<=://)([^:@/]*):[^/]*(?=@)|(?<=[?&])(?:ssl)?password=[^&]*&?")


def without_password(home: str) -> str:
    """A home as it may be shown: a URL without passwords, or the same text."""
    return _PASSWORDS.sub(r"\1", home) if _URL.match(home) else home


def checkouts() -> Path:
    """The folder of all checkouts of this user, in which runs work. It is in no home, because a home can't be a workspace.

    It is where `platformdirs` has the user's data. Each start needs this path, so that library is not imported for it.
    """
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named if os.path.isabs(named) else os.path.expanduser(usual)) / "albert-checkouts"


class Homes(NamedTuple):
    """The four folders. `albert` is `~/.albert`, or `ALBERT_HOME` if `moved` is true.

    If the home is a database, `url` is its URL, and only what is local to this machine is in the folders. Show `url` to nobody: it
    may have a password.
    """

    albert: Path
    moved: bool = False
    url: str = ""

    @property
    def shown(self) -> str:
        """The home, as it may be shown."""
        return without_password(self.url) if self.url else str(self.albert)

    @classmethod
    def resolve(cls, environ: Mapping[str, str] | None = None) -> Homes:
        """Read `ALBERT_HOME` and `HOME` from `environ`, by default the environment of the process. Does not access the disk.

        An empty `ALBERT_HOME` counts as unset. A relative path is relative to the current folder.

        Raises:
            Failure: `io_error` if the home folder is unknown, `invalid_arguments` if the URL is not of PostgreSQL.
        """
        values = os.environ if environ is None else environ
        moved = values.get("ALBERT_HOME", "")
        if _URL.match(moved):
            return cls(_local_folder(moved), moved=True, url=moved)
        try:
            if moved and moved != "~" and not moved.startswith("~/"):
                return cls(Path(os.path.abspath(moved)), moved=True)
            home = Path(values["HOME"]) if values.get("HOME") else Path.home()
            return cls(home / moved[2:], moved=True) if moved else cls(home / ".albert")
        except (RuntimeError, OSError) as error:
            raise Failure(
                "io_error",
                f"the home folder is unknown: {error}",
                hint="set HOME, or set ALBERT_HOME to an absolute path",
            ) from error

    @property
    def tools(self) -> Path:
        """Saved tools."""
        return self.albert / "tools"

    @property
    def config(self) -> Path:
        """Files that the user writes: `governance.yaml` and others."""
        return self._folder("config")

    @property
    def cache(self) -> Path:
        """Files that can be deleted and built again."""
        return self._folder("cache")

    @property
    def state(self) -> Path:
        """The record, contents and artifacts."""
        return self._folder("state")

    def _folder(self, kind: str) -> Path:
        if self.moved:
            return self.albert / kind
        import platformdirs

        folder: Path = getattr(platformdirs, f"user_{kind}_path")("albert")
        return folder


def _local_folder(url: str) -> Path:
    """The folder of this machine for a home in a database."""
    if not _DATABASE.match(url):
        raise Failure(
            "invalid_arguments",
            f"a home is a folder or the URL of a PostgreSQL database, not {url.partition(':')[0]}:…",
            hint="write it like postgresql://user@host:5432/database",
        )
    import platformdirs

    # Another password does not make another home.
    name = hashlib.sha256(without_password(url).partition("://")[2].encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return platformdirs.user_state_path("albert") / "databases" / name


def make_folder(folder: Path) -> Path:
    """Create `folder` and its missing parents, durably and with mode 0700. Returns `folder`.

    Raises:
        Failure: `io_error` if a file has this path, or if the system refuses.
    """
    try:
        make_folders(folder)
    except OSError as error:
        raise io_failure("create the folder", folder, error) from error
    return folder
