import posixpath
import re


@example(
    arguments={
        "folder": ".",
        "pattern": r"draft-(\d+)\.txt",
        "name": r"chapter-\1.txt",
        "dry_run": False,
    },
    files={"draft-1.txt": "one", "draft-2.txt": "two", "other.txt": "three"},
    result=[
        {"from": "draft-1.txt", "to": "chapter-1.txt", "done": True},
        {"from": "draft-2.txt", "to": "chapter-2.txt", "done": True},
    ],
    expect_files={"chapter-1.txt": "one", "chapter-2.txt": "two", "draft-1.txt": "one"},
)
@example(
    arguments={"folder": ".", "pattern": "a.txt", "name": "b.txt"},
    files={"a.txt": "a", "b.txt": "b"},
    raises="ToolError",
    expect_files={"b.txt": "b"},
)
@example(
    arguments={"folder": ".", "pattern": "a.txt", "name": "old/a.txt", "dry_run": False},
    files={"a.txt": "new", "old/a.txt": "kept"},
    raises="ToolError",
    expect_files={"old/a.txt": "kept"},
)
def bulk_copy(folder: str, pattern: str, name: str, dry_run: bool = True) -> list[dict]:
    """Copy the text files of a folder under new names; by default only list the copies.

    Nothing is overwritten: if a new name is taken or leads to another folder, nothing is copied.

    Args:
        folder: The folder, without its subfolders.
        pattern: A regular expression that a file's whole name must match.
        name: The new name; \\1 is the first group of the pattern.
        dry_run: Whether to list the copies without making them.
    """
    entries = tools.list_directory(path=folder)
    files = [e["path"] for e in entries if e["type"] == "file"]
    taken = {e["path"] for e in entries}
    plan: list[dict[str, Any]] = []
    for path in files:
        if re.fullmatch(pattern, posixpath.basename(path)) is None:
            continue
        new = re.sub(pattern, name, posixpath.basename(path))
        if "/" in new or new in ("", ".", ".."):
            raise ToolError(f"{path} would become {new!r}, which is not a name in the same folder")
        target = posixpath.join(posixpath.dirname(path), posixpath.basename(new))
        if target in taken:
            raise ToolError(f"{path} would become {target}, which exists already")
        taken.add(target)
        plan.append({"from": path, "to": target, "done": not dry_run})
    if not dry_run:
        for step in plan:
            tools.write_file(path=step["to"], content=tools.read_file(path=step["from"]))
    return plan
