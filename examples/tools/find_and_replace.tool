@example(
    arguments={"path": "notes.txt", "find": "cat", "replace": "dog"},
    files={"notes.txt": "a cat, another cat"},
    expect_files={"notes.txt": "a dog, another dog"},
)
def find_and_replace(path: str, find: str, replace: str) -> dict:
    """Replace every occurrence of a text in a file.

    Args:
        path: The file to change.
        find: The text to look for.
        replace: The text to put in its place.
    """
    text = tools.read_file(path=path)
    if find not in text:
        raise ToolError(f"{find!r} does not occur in {path}")
    return tools.write_file(path=path, content=text.replace(find, replace))
