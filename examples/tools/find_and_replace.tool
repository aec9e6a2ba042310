@example(
    arguments={"path": "notes.txt", "find": "cat", "replace": "dog"},
    files={"notes.txt": "a cat, another cat\n"},
    result={"path": "notes.txt", "replaced": 2},
    expect_files={"notes.txt": "a dog, another dog\n"},
)
@example(
    arguments={"path": "notes.txt", "find": "bird", "replace": "dog"},
    files={"notes.txt": "a cat\n"},
    raises="ToolError",
    expect_files={"notes.txt": "a cat\n"},
)
def find_and_replace(path: str, find: str, replace: str) -> dict:
    """Replace every occurrence of a text in a file.

    Args:
        path: The file to change.
        find: The text to find; case matters.
        replace: The new text.
    """
    text = tools.read_file(path=path)
    count = text.count(find) if find else 0
    if count == 0:
        raise ToolError(f"{find!r} does not occur in {path}")
    tools.write_file(path=path, content=text.replace(find, replace))
    return {"path": path, "replaced": count}
