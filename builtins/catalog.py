"""The primitives that come with Albert Tools, in the order in which they are listed.

Declaring one takes about a millisecond, and a run needs few; so each is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from albert_tools.engine.model.primitive import Primitive

#: Each primitive, and the module of this package that it stands in under its own name.
PLACES: dict[str, str] = {
    "read_file": "files",
    "write_file": "files",
    "edit_file": "files",
    "list_directory": "folders",
    "delete_file": "moving",
    "move_file": "moving",
    "copy_file": "moving",
    "make_directory": "folders",
    "file_info": "folders",
    "find_files": "finding",
    "search_text": "searching",
    "bash": "shell",
    "run_program": "shell",
    "git": "git",
    "git_status": "git",
    "run_tests": "code",
    "run_linter": "code",
    "http_request": "web",
    "fetch_url": "pages",
    "web_search": "search",
    "current_time": "system",
    "sleep": "system",
    "random_bytes": "system",
    "system_metrics_snapshot": "system_metrics",
    "check_process_health": "system_processes",
    "read_system_logs": "system_logs",
    "self_check": "system_self",
    "publish_artifact": "artifacts",
    "get_artifact": "artifacts",
    "read_result": "results",
    "inference": "inference",
}


def builtin(name: str) -> Primitive:
    """The primitive of that name.

    Raises:
        KeyError: there is none.
    """
    found = getattr(import_module(f"albert_tools.builtins.{PLACES[name]}"), name)
    assert isinstance(found, Primitive)
    return found


def builtin_loaders() -> dict[str, Callable[[], Primitive]]:
    """What loads each primitive of this package, by name."""
    return {name: partial(builtin, name) for name in PLACES}


def builtin_primitives() -> tuple[Primitive, ...]:
    """Every primitive of this package, loaded."""
    return tuple(builtin(name) for name in PLACES)
