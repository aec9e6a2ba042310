"""The limits at which output is cut or refused. Each limit has a name, a value, and a real call that exceeds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from albert_tools.builtins.files import find_files, results, search_text
from albert_tools.builtins.net import bounds
from albert_tools.builtins.shell import confined_command
from albert_tools.builtins.system import logs
from albert_tools.engine.call import ledger
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.pipeline import large_output
from albert_tools.engine.policy.shipped import MAX_FILE_SIZE_MB
from tests.helpers.governed import Governed
from tests.helpers.network import answer, raw

MiB = 1024 * 1024
LIMITS = RunLimits()
SIZE = int(MAX_FILE_SIZE_MB * MiB)


class Shown(NamedTuple):
    """A limit, and the outcome of a call that exceeds it."""

    name: str
    value: int | float
    call: str
    outcome: str
    held: bool


Check = Callable[[], tuple[str, str, bool]]


def demonstrations(home: Governed, url: str, log: Path) -> dict[str, tuple[int | float, Check]]:
    """The name of each limit, its value, and a check. The check returns the call, its outcome, and whether the limit applied."""

    def output() -> tuple[str, str, bool]:
        value = home.value("bash", command="seq 200000")
        length = len(value["output"].encode())
        held = (
            value["truncated"]
            and length < confined_command.MAX_OUTPUT + 200
            and value["size_bytes"] > confined_command.MAX_OUTPUT
        )
        return "bash: seq 200000", f"{length} bytes returned of {value['size_bytes']}, with a handle", held

    def kept() -> tuple[str, str, bool]:
        value = home.value("bash", command="head -c 20000000 /dev/zero | tr '\\0' x")
        size = home.value("read_result", handle=value["handle"])["size_bytes"]
        return (
            "bash: 20,000,000 bytes",
            f"{size} bytes kept of {value['size_bytes']}",
            size == confined_command.MAX_KEPT,
        )

    def body() -> tuple[str, str, bool]:
        length = home.composite(f'return len(tools.http_request(url="{url}")["body"])')
        return "http_request: a body of 3,000,000 bytes", f"{length} bytes", length == bounds.MAX_BODY

    def refused(tool: str, bound: int, **arguments: Any) -> Check:
        def check() -> tuple[str, str, bool]:
            broken = home.broken(tool, limit=bound + 1, **arguments)
            return f"{tool}: limit={bound + 1}", f"refused: {broken}", broken == [("limit", "maximum")]

        return check

    def shown() -> tuple[str, str, bool]:
        (home.work / "long.txt").write_text("x" * 5000)
        text = home.value("search_text", pattern="x", path="long.txt")["matches"][0]["text"]
        return (
            "search_text: a line of 5,000 characters",
            f"{len(text)} characters",
            len(text) <= search_text.MAX_SHOWN + 1,
        )

    def file_size() -> tuple[str, str, bool]:
        (home.work / "large.bin").write_bytes(b"x" * (SIZE + 1))
        error = home.error("read_file", path="large.bin")
        return (
            f"read_file: a file of {SIZE + 1} bytes",
            f"{error.code}: {error.message}",
            error.code == "too_large",
        )

    def handed() -> tuple[str, str, bool]:
        value = home.composite('return "x" * 5000000')
        held = value["truncated"] and len(value["head"]) == len(value["tail"]) == large_output.SHOWN_BYTES
        return "a saved tool gives 5,000,000 bytes", f"{len(value['head'])} of each end, with a handle", held

    def failing(body: str, code: str) -> Check:
        def check() -> tuple[str, str, bool]:
            home.service.define(f'def t() -> Any:\n    """Do it."""\n    {body}\n')
            error = home.service.invoke("t").error
            assert error is not None
            return f"a saved tool: {body}", error.code, error.code == code

        return check

    def effects() -> tuple[str, str, bool]:
        home.value("make_directory", path="/".join(["d"] * 150))
        entry = home.entries("result")[-1]
        said = f"{len(entry['effects'])} effects listed in the ledger, and that there are {entry['more_effects']} more"
        held = (len(entry["effects"]), entry["more_effects"]) == (ledger.MAX_EFFECTS, 50)
        return "make_directory: 150 folders in one another", said, held

    def message() -> tuple[str, str, bool]:
        log.write_text("y " * 4000 + "\n")
        found = home.value("read_system_logs")["entries"][0]["message"]
        return (
            "read_system_logs: a line of 8,000 characters",
            f"{len(found)} characters",
            len(found) <= logs.MAX_MESSAGE + 1,
        )

    return {
        "builtins.shell.confined_command.MAX_OUTPUT": (confined_command.MAX_OUTPUT, output),
        "builtins.shell.confined_command.MAX_KEPT": (confined_command.MAX_KEPT, kept),
        "builtins.net.bounds.MAX_BODY": (bounds.MAX_BODY, body),
        "builtins.files.results.MAX_SLICE": (
            results.MAX_SLICE,
            refused("read_result", results.MAX_SLICE, handle="b3:" + "0" * 64),
        ),
        "builtins.files.find_files.MAX_FOUND": (
            find_files.MAX_FOUND,
            refused("find_files", find_files.MAX_FOUND, pattern="*"),
        ),
        "builtins.files.search_text.MAX_MATCHES": (
            search_text.MAX_MATCHES,
            refused("search_text", search_text.MAX_MATCHES, pattern="x"),
        ),
        "builtins.files.search_text.MAX_SHOWN": (search_text.MAX_SHOWN, shown),
        "engine.policy.shipped.MAX_FILE_SIZE_MB": (SIZE, file_size),
        "builtins.system.logs.MAX_MESSAGE": (logs.MAX_MESSAGE, message),
        "engine.pipeline.large_output.SHOWN_BYTES": (large_output.SHOWN_BYTES, handed),
        "engine.call.ledger.MAX_EFFECTS": (ledger.MAX_EFFECTS, effects),
        "engine.model.limits.RunLimits.log_bytes": (LIMITS.log_bytes, failing('print("x" * 2000000)', "log_limit")),
        "engine.model.limits.RunLimits.result_bytes": (
            LIMITS.result_bytes,
            failing(f'return "x" * {LIMITS.result_bytes + 1}', "result_limit"),
        ),
    }


def caps() -> Iterator[Shown]:
    """Exceed each limit with a call."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())).resolve()
        server = stack.enter_context(raw(lambda head, c: c.sendall(answer(b"x" * 3_000_000))))
        log = folder / "syslog"
        governance = {
            "allow": ["read_system_logs"],
            "categories": {"execute": {"allowed_in_modes": ["NORMAL"]}, "network": {"allowed_hosts": ["127.0.0.1"]}},
            "primitives": {"read_system_logs": {"files": [str(log)]}},
        }
        home = Governed(folder, governance=governance)
        stack.callback(home.service.close)
        (home.work / "a.txt").write_text("one\n")
        checks = demonstrations(home, f"http://127.0.0.1:{server.port}/", log)
        for name, (value, check) in checks.items():
            try:
                yield Shown(name, value, *check())
            except Exception as error:
                yield Shown(name, value, "", f"{type(error).__name__}: {error}"[:300], False)
