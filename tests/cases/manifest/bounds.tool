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
# range with a negative start has more than the value of a parameter
def t(count: int) -> None:
    """Wait."""
    for number in range(-5, count):
        tools.sleep(seconds=1)
# manifest: sleep up to 1,000 ×, the limit of a run
---
# range with an unknown start has more than the value of a parameter, because the start can be negative
def t(low: int, high: int) -> None:
    """Wait."""
    for number in range(low, high):
        tools.sleep(seconds=1)
# manifest: sleep up to 1,000 ×, the limit of a run
---
# range that counts down has more than its end
def t(count: int) -> None:
    """Wait."""
    for number in range(9, count, -1):
        tools.sleep(seconds=1)
# manifest: sleep up to 1,000 ×, the limit of a run
---
# a counter that begins below zero
def t(count: int) -> None:
    """Wait."""
    number = -3
    while number < count:
        tools.sleep(seconds=1)
        number += 1
# manifest: sleep up to 1,000 ×, the limit of a run
---
# a counter that reaches its limit makes a round more
def t(count: int) -> None:
    """Wait."""
    number = 0
    while number <= count:
        tools.sleep(seconds=1)
        number += 1
# manifest: sleep up to 1,000 ×, the limit of a run
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
# manifest: read_file reads ‹part of {names}› with ","; at most 1 + length of {names}
# manifest: result from {names}, read_file(‹part of {names}›)
---
# a while has no bound
def t(path: str) -> str:
    """Follow."""
    while path.endswith(".link"):
        path = tools.read_file(path=path)
    return path
# manifest: read_file reads ‹output of read_file(‹output of read_file(…)› or {path})› or {path}; up to 1,000 ×, the limit of a run
# manifest: result from {path}, read_file(‹output of read_file(…)› or {path})
---
# a while with a counter
def t(url: str, names: list[str], tries: int) -> list:
    """Read."""
    n, i, texts = 0, 0, []
    while i < len(names) and names[i] != "end":
        texts.append(tools.read_file(path=names[i]))
        i += 1
    while n < 3:
        n += 1
        tools.sleep(seconds=1)
    n = 1
    while n <= tries:
        tools.current_time()
        n += 1
    return texts
# manifest: read_file reads {names[*]} with 3; at most length of {names}
# manifest: current_time at most {tries}
# manifest: sleep at most 3 ×
# manifest: result from {names}, read_file({names[*]})
---
# a counter that something else changes, or that a round leaves as it is
def t(names: list[str]) -> None:
    """Wait."""
    i = j = k = 0
    while i < 3:
        if names:
            continue
        i += 1
        tools.sleep(seconds=1)
    while j < 3:
        if names:
            j += 1
        tools.sleep(seconds=2)
    def back():
        nonlocal k
        k = 0
    while k < 3:
        k += 1
        back()
        tools.sleep(seconds=3)
    while tools.current_time() and i < 3:
        i += 1
# manifest: current_time up to 1,000 ×, the limit of a run
# manifest: sleep up to 1,000 ×, the limit of a run
---
# a tool that calls itself
def t(path: str, depth: int = 0) -> int:
    """Walk."""
    found = len(tools.read_file(path=path))
    return found if depth else t(path + "/x", 1)
# manifest: read_file reads {path} or {path}/x‹ANYTHING from {path}› with "/x/x/x/x/x/x/x/x/x"; up to 1,000 ×, the limit of a run
# manifest: result from {depth}, read_file({path}), read_file({path}/x‹ANYTHING›)
---
# what a nested function gets and changes
def t(url: str, path: str, other: str) -> str:
    """Fetch."""
    target = path
    def save(text):
        tools.write_file(path=target, content=text)
    save("a")
    target = other
    body = ""
    def fetch():
        nonlocal body
        body = tools.fetch_url(url=url)["text"]
    fetch()
    return body
# manifest: fetch_url connects to {url}; THE HOST IS NOT FIXED; at most once
# manifest: write_file writes {other} or {path}; at most once
# manifest: > content "a"
# manifest: result from fetch_url({url})
---
# a hidden name is what it hides by
def t(str: str, len: list[str]) -> None:
    """Write."""
    for open in len:
        tools.write_file(path=open, content=str)
# manifest: write_file writes {len[*]}; at most length of {len}
# manifest: > content {str}
# manifest: when and how often is decided by
# manifest: > write_file {len}
---
# a function chosen from a dict
def t(op: str, path: str) -> Any:
    """Choose."""
    table = {"read": lambda p: tools.read_file(path=p), "drop": lambda p: tools.delete_file(path=p)}
    save = lambda text: tools.write_file(path="out", content=text)
    save(op)
    return table[op](path)
# manifest: delete_file deletes {path}; at most once
# manifest: write_file writes "out"; at most once
# manifest: > content {op}
# manifest: read_file reads {path}; at most once
# manifest: write_file("out") may write what is read by read_file({path})
# manifest: result from {op}, delete_file({path}), read_file({path})
# manifest: when and how often is decided by
# manifest: > delete_file {op}
---
# a function of a dictionary that is called from two places
def t(s: str) -> Any:
    """Read."""
    read = {"a": lambda path: tools.read_file(path=path)}
    read["a"]("x")
    return read["a"](s)
# manifest: read_file reads "x" or {s}; up to 1,000 ×, the limit of a run
# manifest: result from read_file("x" or {s})
