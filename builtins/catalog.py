"""The primitives that come with Albert Tools, in the order in which they are listed."""

from __future__ import annotations

from albert_tools.builtins.artifacts import get_artifact, publish_artifact
from albert_tools.builtins.code import run_linter, run_tests
from albert_tools.builtins.files import edit_file, read_file, write_file
from albert_tools.builtins.finding import find_files
from albert_tools.builtins.folders import file_info, list_directory, make_directory
from albert_tools.builtins.git import git, git_status
from albert_tools.builtins.inference import inference
from albert_tools.builtins.moving import copy_file, delete_file, move_file
from albert_tools.builtins.pages import fetch_url
from albert_tools.builtins.results import read_result
from albert_tools.builtins.search import web_search
from albert_tools.builtins.searching import search_text
from albert_tools.builtins.shell import bash, run_program
from albert_tools.builtins.system import current_time, random_bytes, sleep
from albert_tools.builtins.system_logs import read_system_logs
from albert_tools.builtins.system_metrics import system_metrics_snapshot
from albert_tools.builtins.system_processes import check_process_health
from albert_tools.builtins.system_self import self_check
from albert_tools.builtins.web import http_request
from albert_tools.engine.model.primitive import Primitive

PRIMITIVES: tuple[Primitive, ...] = (
    read_file,
    write_file,
    edit_file,
    list_directory,
    delete_file,
    move_file,
    copy_file,
    make_directory,
    file_info,
    find_files,
    search_text,
    bash,
    run_program,
    git,
    git_status,
    run_tests,
    run_linter,
    http_request,
    fetch_url,
    web_search,
    current_time,
    sleep,
    random_bytes,
    system_metrics_snapshot,
    check_process_health,
    read_system_logs,
    self_check,
    publish_artifact,
    get_artifact,
    read_result,
    inference,
)


def builtin_primitives() -> tuple[Primitive, ...]:
    """Every primitive of this package."""
    return PRIMITIVES
