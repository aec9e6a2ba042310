"""The primitives that ship with Albert Tools, in the order of listings.

A module is imported when one of its primitives is first used. Declaring a primitive takes about a millisecond, and a run needs few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive

#: Primitive → the module of this package that defines it under the same name.
PLACES: dict[str, str] = {
    "read_file": "files.files",
    "write_file": "files.files",
    "edit_file": "files.files",
    "read_bytes": "files.file_bytes",
    "write_bytes": "files.file_bytes",
    "list_directory": "files.folders",
    "delete_file": "files.move_files",
    "move_file": "files.move_files",
    "copy_file": "files.move_files",
    "make_directory": "files.folders",
    "file_info": "files.folders",
    "find_files": "files.find_files",
    "search_text": "files.search_text",
    "bash": "shell.shell",
    "run_program": "shell.shell",
    "git": "git.git",
    "git_status": "git.git",
    "run_tests": "code.code",
    "run_linter": "code.code",
    "http_request": "net.web",
    "fetch_url": "net.pages",
    "web_search": "net.web_search",
    "current_time": "system.time_and_random",
    "sleep": "system.time_and_random",
    "random_bytes": "system.time_and_random",
    "system_metrics_snapshot": "system.metrics",
    "check_process_health": "system.processes",
    "read_system_logs": "system.logs",
    "self_check": "system.health",
    "publish_artifact": "files.artifacts",
    "get_artifact": "files.artifacts",
    "read_result": "files.results",
    "start_batch": "system.batches",
    "read_batch": "system.batches",
    "inference": "models.inference",
}


def builtin(name: str) -> Primitive:
    """Returns the primitive with that name.

    Raises:
        KeyError: no primitive has that name.
    """
    primitive = getattr(import_module(f"albert_tools.builtins.{PLACES[name]}"), name)
    assert isinstance(primitive, Primitive)
    return primitive


def builtin_loaders(names: Iterable[str] | None = None) -> dict[str, Callable[[], Primitive]]:
    """Maps the name of each primitive to a function that loads it. `names` selects primitives; the default is all.

    Raises:
        ValueError: no primitive has one of the names.
    """
    chosen = PLACES if names is None else list(names)
    for name in chosen:
        if name not in PLACES:
            raise ValueError(f"there is no built-in primitive {name!r}{did_you_mean(str(name), PLACES)}")
    return {name: partial(builtin, name) for name in chosen}
