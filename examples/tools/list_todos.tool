import posixpath
import re

MARK = re.compile(r"(?:#|//|--|/\*|<!--)\s*(TODO|FIXME|XXX)\b[:\s]*(.*?)\s*(?:\*/|-->)?$")


def _marks(path: str) -> list:
    try:
        text = tools.read_file(path=path)
    except ToolError:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = MARK.search(line)
        if match is not None:
            found.append({"path": path, "line": number, "kind": match[1], "text": match[2]})
    return found


@example(
    arguments={"endings": [".py", ".c"]},
    files={
        "a.py": "x = 1  # TODO: count from 0\n",
        "src/b.c": "/* FIXME leaks */\n",
        "c.txt": "# TODO nothing\n",
    },
    result=[
        {"path": "a.py", "line": 1, "kind": "TODO", "text": "count from 0"},
        {"path": "src/b.c", "line": 1, "kind": "FIXME", "text": "leaks"},
    ],
)
def list_todos(folder: str = ".", endings: list[str] | None = None) -> list[dict]:
    """List the TODO, FIXME and XXX comments of a project.

    Args:
        folder: The folder to search, with its subfolders except hidden ones.
        endings: The endings of files to read; by default those of common source files.
    """
    wanted = tuple(
        endings or [".py", ".js", ".ts", ".c", ".h", ".go", ".rs", ".java", ".sh", ".sql", ".html"],
    )
    entries = tools.list_directory(path=folder, recursive=True)
    paths = [e["path"] for e in entries if e["type"] == "file" and e["path"].endswith(wanted)]
    visible = [
        p
        for p in paths
        if not any(part.startswith(".") for part in posixpath.normpath(p).split("/"))
    ]
    return [mark for marks in parallel(_marks(path) for path in visible) for mark in marks]
