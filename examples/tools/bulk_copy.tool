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
def bulk_copy(folder: str, pattern: str, name: str, dry_run: bool = True) -> list[dict]:
    """Copy the text files of a folder under new names; by default only say what would be done.

    The old files stay. Nothing is overwritten: when a new name is taken, nothing is copied at all.

    Args:
        folder: The folder; folders under it are left alone.
        pattern: A regular expression that a file's whole name must match.
        name: The new name; \\1 stands for the pattern's first group.
        dry_run: Whether to say only what would be done.
    """
    files = [e["path"] for e in tools.list_directory(path=folder) if e["type"] == "file"]
    taken = set(files)
    plan = []
    for path in files:
        if re.fullmatch(pattern, posixpath.basename(path)) is None:
            continue
        target = posixpath.join(
            posixpath.dirname(path),
            re.sub(pattern, name, posixpath.basename(path)),
        )
        if target in taken:
            raise ToolError(f"{path} would become {target}, which is there already")
        taken.add(target)
        plan.append({"from": path, "to": target, "done": not dry_run})
    if not dry_run:
        for step in plan:
            tools.write_file(path=step["to"], content=tools.read_file(path=step["from"]))
    return plan
