"""A PostgreSQL server for the tests of one process, on a Unix socket in a folder of its own. It syncs, as a real one does.

It is started at the first use. It ends with the process that started it, however that process ends: a shell waits for the end of
a pipe that only this process has, and then stops the server.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import closing, suppress
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

from tests.helpers.cables import ADDRESS, Switch
from tests.helpers.system import PATH, located

#: Ends the server and deletes its folder when nobody has the other end of the pipe any more.
_KEEPER = """
read -r _
kill -QUIT "$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do test -e "$0/data/postmaster.pid" || break; sleep 0.2; done
umount -l "$0/data" 2>/dev/null
rm -rf "$0"
"""
#: The bytes of a small disk.
SMALL = 400_000_000
SETTINGS = {
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}
_numbers = count()


class Server:
    """A running server. A record gets a schema of its own by `url()`.

    With a `switch`, it is in this network, too, at `ADDRESS`, and its data are on a small disk in memory. This needs root.
    """

    def __init__(self, switch: Switch | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="albert-postgres-"))
        self.data = self.folder / "data"
        # The server refuses to run as root.
        self.user = _another_user() if os.geteuid() == 0 else None
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.folder.chmod(0o711 if self.user else 0o700)
        self._switch = switch
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        atexit.register(self.close)
        if switch is not None:
            self.data.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(self.data)], check=True)
            shutil.chown(self.data, self.user)
        self.run("initdb", "--no-sync", "--auth=trust", "--username=albert", "--encoding=UTF8", "--locale=C")
        rules = self.data / "pg_hba.conf"
        others = f"host all all {ADDRESS}/24 trust\n"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text() + others)
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL on the server's folder."""
        path = located(program)
        assert path is not None, f"{program} is missing; `make system` installs it"
        command, user = [path, "-D", str(self.data), *arguments], self.user
        if self._switch is not None and user is not None:
            # Only root can enter the network.
            account, user = pwd.getpwnam(user), None
            command = [*self._switch.inside, "-S", str(account.pw_uid), "-G", str(account.pw_gid), *command]
        subprocess.run(
            command,
            user=user,
            extra_groups=[] if user else None,
            env={"PATH": PATH, "LC_ALL": "C"},
            cwd="/",
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        own = {**SETTINGS, "listen_addresses": ADDRESS if self._switch is not None else ""}
        settings = " ".join(f"-c {name}={value!r}" for name, value in own.items())
        self.run("pg_ctl", "start", "--wait", f"--log={self.folder}/log", "--options", f"{settings} -k {self.folder}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server. The mode "immediate" is a crash."""
        self.run("pg_ctl", "stop", "--wait", "-m", mode)

    @property
    def runs(self) -> bool:
        """Whether the server runs."""
        return (self.data / "postmaster.pid").exists()

    def resize_disk(self, room: int = SMALL) -> None:
        """Let the small disk have `room` bytes, or a megabyte more than are used now."""
        disk = os.statvfs(self.data)
        size = max(room, (disk.f_blocks - disk.f_bfree) * disk.f_frsize + 1_000_000)
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.data)], check=True)

    def url(self, user: str = "albert") -> str:
        """The URL of a record that does not exist yet."""
        return f"postgresql:///postgres?host={self.folder}&user={user}&options=-csearch_path%3Dr{next(_numbers)}"

    def connect(self, url: str = "") -> psycopg.Connection:
        """A connection of an administrator, in the record's schema."""
        return psycopg.connect(url or self.url(), autocommit=True)

    def login(self, url: str, name: str, *roles: str) -> str:
        """The URL of a home for a user who has these roles of it, and no others."""
        with closing(self.connect(url)) as connection:
            schema = connection.execute("SELECT current_schema()").fetchone()
            with suppress(psycopg.errors.DuplicateObject):
                connection.execute(f"CREATE USER {name}")
            for role in roles:
                connection.execute(f'GRANT "postgres.{(schema or [""])[0]}_{role}" TO {name}')
        return url.replace("user=albert", f"user={name}")

    def close(self) -> None:
        """Stop the server and delete its folder."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()


@cache
def server() -> Server:
    """The server of this process."""
    return Server()


def _another_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise AssertionError("no user can run PostgreSQL's server")
