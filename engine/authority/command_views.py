"""What a command sees of the workspace and can change, for a person: before a call (`albert policy explain`) and in a question."""

from __future__ import annotations

import os
from typing import NamedTuple

from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace.git_folders import repositories
from albert_tools.engine.workspace.sandbox_view import shown_and_hidden, writable_parts
from albert_tools.engine.workspace.workspace import Workspace

#: The kinds of views, in words.
VIEWS = {
    "hidden": "will not see",
    "hidden_if_tracked": "will not see these git folders, if their repository has ever tracked a forbidden path",
    "only": "will see only",
    "writable": "can change only",
    "refused": "will not run",
}


class CommandView(NamedTuple):
    """A kind of `VIEWS`, and the paths that it is about, relative to the workspace. For ``refused``, the reason."""

    kind: str
    paths: list[str]


def command_views(workspace: Workspace, authority: Authority, definition: ToolDefinition) -> list[CommandView]:
    """What the commands of a tool see of the workspace, and may change. Nothing if they see all of it and may change it, or if the
    tool runs none."""
    if definition.kind == "composite" or "execute" not in definition.effects:
        return []
    root, judge = str(workspace.root), authority.guarded(definition, workspace).judge
    try:
        shown, hidden = shown_and_hidden(judge, root) if judge.selective else (None, [])
        is_needed = judge.selective or definition.family == "git"
        git_folders = repositories(root).git_folders if is_needed else []
    except Failure as failure:
        return [CommandView("refused", [failure.message])]
    # The tool `git` sees its repository, and leaves the forbidden paths out.
    tracked = git_folders if judge.selective and definition.family != "git" else []
    own = filter(os.path.isdir, git_folders) if definition.family == "git" else ()
    writable = writable_parts(judge, root, shown, hidden, git_folders=own)
    found = [
        ("only", shown),
        ("hidden", hidden or None),
        ("hidden_if_tracked", tracked or None),
        ("writable", writable),
    ]
    return [
        CommandView(kind, sorted(path.removeprefix(f"{root}/") or "." for path in paths))
        for kind, paths in found
        if paths is not None
    ]
