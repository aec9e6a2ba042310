# a call outside of loops is made once
def t() -> str:
    """Read."""
    return tools.read_file(path="a.txt")
# manifest: read_file reads "a.txt"; at most once
# manifest: result from read_file("a.txt")
---
# a loop over a constant list
def t() -> list[str]:
    """Read three files."""
    return [tools.read_file(path=name) for name in ["a.txt", "b.txt", "c.txt"]]
# manifest: read_file reads "a.txt" or "b.txt" or "c.txt"; at most 3 ×
# manifest: result from read_file("a.txt" or "b.txt" or "c.txt")
---
# a loop over a parameter
def t(paths: list[str]) -> int:
    """Count."""
    total = 0
    for path in paths:
        total += len(tools.read_file(path=path))
    return total
# manifest: read_file reads {paths[*]}; at most length of {paths}
# manifest: result from {paths}, read_file({paths[*]})
---
# nested loops multiply
def t(folders: list[str], names: list[str]) -> int:
    """Count."""
    total = 0
    for folder in folders:
        for name in names:
            total += len(tools.read_file(path=f"{folder}/{name}"))
    return total
# manifest: read_file reads {folders[*]}/{names[*]}; at most length of {folders} × length of {names}
# manifest: result from {folders}, {names}, read_file({folders[*]}/{names[*]})
---
# a helper that is called twice
def _read(path: str) -> str:
    return tools.read_file(path=path)

def t(path: str) -> list[str]:
    """Read two."""
    return [_read(path), _read("b.txt")]
# manifest: read_file reads {path} or "b.txt"; at most 2 ×
# manifest: result from read_file("b.txt"), read_file({path})
---
# range has the value of a parameter
def t(count: int) -> None:
    """Wait."""
    for number in range(count):
        tools.sleep(seconds=1)
# manifest: sleep at most {count}
---
# retries in a loop of constants
def t(url: str) -> str:
    """Fetch, with three attempts."""
    for attempt in range(3):
        try:
            return tools.fetch_url(url=url)["text"]
        except ToolError as error:
            print(error.message)
    return ""
# manifest: fetch_url connects to {url}; THE HOST IS NOT FIXED; at most 3 ×
# manifest: result from {url}, fetch_url({url})
# manifest: printed from {url}, fetch_url({url})
---
# parallel runs once for each item
def t(paths: list[str]) -> list[str]:
    """Read."""
    return parallel(tools.read_file(path=path) for path in paths)
# manifest: read_file reads {paths[*]}; at most length of {paths}
# manifest: result from {paths}, read_file({paths[*]})
---
# a recursion has no bound
def _walk(folder: str) -> int:
    return sum(_walk(entry["path"]) for entry in tools.list_directory(path=folder) if entry["type"] == "directory")

def t(folder: str) -> int:
    """Walk."""
    return _walk(folder)
# manifest: list_directory reads {folder} or {folder}/**; up to 1,000 ×, the limit of a run
# manifest: result from list_directory({folder} or {folder}/**)
---
# the parts of a text are at most its length
def t(names: str) -> list[str]:
    """Read."""
    return [tools.read_file(path=name) for name in names.split(",")]
# manifest: read_file reads ‹part of {names}›; at most 1 + length of {names}
# manifest: result from {names}, read_file(‹part of {names}›)
