# a call returns the tool's output
def t(path: str) -> Any:
    """Read."""
    return tools.read_file(path=path).upper()
# arguments: {"path": "a.txt"}
# calls: read_file(path="a.txt") -> "text"
# result: "TEXT"
---
# positional arguments are sent by name
def t() -> Any:
    """Write."""
    return tools.write_file("a.txt", content="x")["size_bytes"]
# calls: write_file(path="a.txt", content="x") -> {"path": "a.txt", "size_bytes": 1, "sha256": "…"}
# result: 1
---
# omitted arguments are not sent
def t() -> Any:
    """List."""
    return tools.list_directory()
# calls: list_directory() -> []
# result: []
---
# calls are made in the order in which they are evaluated
def _read(path: str) -> str:
    return tools.read_file(path=path)

def t() -> Any:
    """Read."""
    return {"b": _read("b"), "a": [_read(p) for p in ("a", "c")]}
# calls: read_file(path="b") -> "B"
# calls: read_file(path="a") -> "A"
# calls: read_file(path="c") -> "C"
# result: {"b": "B", "a": ["A", "C"]}
---
# a failed call raises ToolError with its four fields
def t(path: str) -> Any:
    """Read."""
    try:
        return tools.read_file(path=path)
    except ToolError as e:
        return [e.tool, e.code, e.message, e.retryable, str(e)]
# arguments: {"path": "a.txt"}
# calls: read_file(path="a.txt") raises not_found "there is no file a.txt"
# result: ["read_file", "not_found", "there is no file a.txt", False, "there is no file a.txt"]
---
# an uncaught ToolError ends the tool
def t(path: str) -> Any:
    """Read."""
    text = tools.read_file(path=path)  # raises: ToolError[not_found] "there is no file a.txt"
    return text
# arguments: {"path": "a.txt"}
# calls: read_file(path="a.txt") raises not_found "there is no file a.txt"
---
# a denied call raises ToolError
def t(command: str) -> Any:
    """Run."""
    try:
        return tools.bash(command=command)
    except ToolError as e:
        if e.code == "permission_denied":
            return "denied"
        raise
# arguments: {"command": "ls"}
# calls: bash(command="ls") raises permission_denied "bash is not allowed here"
# result: "denied"
---
# ToolError is an Exception, not a ValueError
def t(path: str) -> Any:
    """Read."""
    try:
        return tools.read_file(path=path)
    except ValueError:
        return "value"
    except Exception as e:
        return isinstance(e, ToolError)
# arguments: {"path": "a"}
# calls: read_file(path="a") raises io_error "no"
# result: True
---
# a tool raises ToolError
def t(text: str, find: str) -> Any:
    """Replace."""
    if find not in text:
        raise ToolError(f"{find!r} does not occur")  # raises: ToolError "'z' does not occur"
    return text
# arguments: {"text": "a", "find": "z"}
---
# a tool raises ToolError with a code
def t() -> Any:
    """Give up."""
    raise ToolError("later", code="busy", retryable=True)  # raises: ToolError[busy] "later"
---
# a program retries a call
def t(url: str) -> Any:
    """Fetch."""
    for attempt in range(3):
        try:
            return tools.http_request(url=url)["body"]
        except ToolError as e:
            print(f"attempt {attempt + 1}: {e.code}")
            tools.sleep(seconds=2 ** attempt)
    raise ToolError("gave up")
# arguments: {"url": "https://a.example"}
# calls: http_request(url="https://a.example") raises network_error "cut off"
# calls: sleep(seconds=1)
# calls: http_request(url="https://a.example") -> {"status": 200, "body": "ok"}
# prints: "attempt 1: network_error"
# result: "ok"
---
# a tool's result is a copy
def t() -> Any:
    """Change."""
    a = tools.list_directory(path=".")
    a.append({"path": "mine"})
    return [e["path"] for e in a if e.get("type") != "directory"]
# calls: list_directory(path=".") -> [{"path": "a", "type": "file"}, {"path": "b", "type": "directory"}]
# result: ["a", "mine"]
---
# arguments are copied when the call is made
def t() -> Any:
    """Change."""
    labels = ["a"]
    tools.tracker.create_issue(title="x", labels=labels)
    labels.append("b")
    tools.tracker.create_issue(title="y", labels=tuple(labels))
    return labels
# calls: tracker.create_issue(title="x", labels=["a"])
# calls: tracker.create_issue(title="y", labels=["a", "b"])
# result: ["a", "b"]
---
# an argument that can't leave the program fails the call
def t() -> Any:
    """Send."""
    try:
        tools.tracker.create_issue(title="x", labels={"a"})
    except ToolError as e:
        return [e.code, e.tool]
# result: ["not_json", "tracker.create_issue"]
---
# calls in conditions, comprehensions and f-strings
def t() -> Any:
    """Read."""
    if tools.read_file(path="a") == "yes" and not tools.read_file(path="b"):
        return f"<{tools.read_file(path='c')}>" + "".join(tools.read_file(path=p) for p in "d")
    return None
# calls: read_file(path="a") -> "yes"
# calls: read_file(path="b") -> ""
# calls: read_file(path="c") -> "C"
# calls: read_file(path="d") -> "D"
# result: "<C>D"
---
# finally makes its calls after another call failed
def t() -> Any:
    """Clean."""
    try:
        tools.read_file(path="a")
    finally:
        tools.write_file(path="log", content="done")
    return 1
# calls: read_file(path="a") raises not_found "no a"
# calls: write_file(path="log", content="done") -> {}
# raises: ToolError[not_found] "no a"
---
# print with sep and end
def t() -> Any:
    """Say."""
    print("a", 1, None, [1.0, "x"])
    print("a", "b", sep="-", end="")
    print("|", end="!\n")
    print()
    print(*range(3), sep=",")
# prints: "a 1 None [1.0, 'x']"
# prints: "a-b|!"
# prints: ""
# prints: "0,1,2"
---
# parallel over items returns a list in their order
def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) for p in paths)
# arguments: {"paths": ["b", "a"]}
# calls: read_file(path="b") -> "B"
# calls: read_file(path="a") -> "A"
# result: ["B", "A"]
---
# parallel over an empty list
def t() -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) for p in [])
# result: []
---
# parallel with several calls returns a tuple
def _size(path: str) -> int:
    return len(tools.read_file(path=path))

def t() -> Any:
    """Read."""
    both = parallel(_size("a"), tools.read_file(path="b"))
    a, b = both
    return [isinstance(both, tuple), a, b]
# calls: read_file(path="a") -> "xyz"
# calls: read_file(path="b") -> "B"
# result: [True, 3, "B"]
---
# one call in parallel
def t() -> Any:
    """Read."""
    return parallel(tools.read_file(path="a"))
# calls: read_file(path="a") -> "A"
# result: ["A"]
---
# parallel with conditions, several loops and unpacking
def t() -> Any:
    """Read."""
    return parallel(tools.read_file(path=f"{d}/{n}") for d, names in [("x", "ab"), ("y", "c")] if d for n in names if n != "b")
# calls: read_file(path="x/a") -> 1
# calls: read_file(path="y/c") -> 2
# result: [1, 2]
---
# each body of parallel has its own variable
def _pair(p: str) -> list:
    text = tools.read_file(path=p)
    return [p, text]

def t() -> Any:
    """Read."""
    return parallel(_pair(p) for p in "ab")
# calls: read_file(path="a") -> "A"
# calls: read_file(path="b") -> "B"
# result: [["a", "A"], ["b", "B"]]
---
# parallel raises the first error in program order and starts nothing after it
def t() -> Any:
    """Write."""
    try:
        return parallel(tools.write_file(path=p, content="") for p in "abc")
    except ToolError as e:
        return e.message
# calls: write_file(path="a", content="") -> {}
# calls: write_file(path="b", content="") raises io_error "no b"
# result: "no b"
---
# errors that the bodies of parallel catch
def _read(p: str) -> dict:
    try:
        return {"path": p, "text": tools.read_file(path=p)}
    except ToolError as e:
        return {"path": p, "error": e.code}

def t() -> Any:
    """Read."""
    return parallel(_read(p) for p in "ab")
# calls: read_file(path="a") raises not_found "no a"
# calls: read_file(path="b") -> "B"
# result: [{"path": "a", "error": "not_found"}, {"path": "b", "text": "B"}]
---
# a Python error in a body of parallel
def t() -> Any:
    """Divide."""
    return parallel(10 // x for x in [1, 0])  # raises: ZeroDivisionError "integer division or modulo by zero"
---
# parallel within parallel
def _both(p: str) -> list:
    return parallel(tools.read_file(path=p + q) for q in "12")

def t() -> Any:
    """Read."""
    return parallel(_both(p) for p in "ab")
# calls: read_file(path="a1") -> 1
# calls: read_file(path="a2") -> 2
# calls: read_file(path="b1") -> 3
# calls: read_file(path="b2") -> 4
# result: [[1, 2], [3, 4]]
---
# a body of parallel reads outer variables
def t(prefix: str) -> Any:
    """Read."""
    names = {"a": "x", "b": "y"}
    return parallel(tools.read_file(path=prefix + names[k]) for k in names)
# arguments: {"prefix": "p/"}
# calls: read_file(path="p/x") -> 1
# calls: read_file(path="p/y") -> 2
# result: [1, 2]
---
# find and replace in files
@tool(timeout=60)
@example(arguments={"path": "notes.txt", "find": "cat", "replace": "dog"}, files={"notes.txt": "a cat"})
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
# arguments: {"path": "n", "find": "cat", "replace": "dog"}
# calls: read_file(path="n") -> "a cat, another cat"
# calls: write_file(path="n", content="a dog, another dog") -> {"path": "n"}
# result: {"path": "n"}
---
# bodies of parallel that read from the same stream run one after the other
import io

def _next(lines: Any, p: str) -> str:
    text = tools.read_file(path=p) if p == "a" else p
    for line in lines:
        return text + line.strip()
    return text

def t() -> Any:
    """Read."""
    lines = io.StringIO("1\n2\n3\n")
    return parallel(_next(lines, p) for p in "abc")
# calls: read_file(path="a") -> "A"
# result: ["A1", "b2", "c3"]
---
# bodies of parallel that read the same defaultdict run one after the other
from collections import defaultdict

def _look(d: dict, p: str) -> int:
    n = len(d)
    tools.read_file(path=p)
    return n + len(d[p])

def t() -> Any:
    """Read."""
    d = defaultdict(list)
    return parallel(_look(d, p) for p in "ab")
# calls: read_file(path="a") -> "A"
# calls: read_file(path="b") -> "B"
# result: [0, 1]
---
# bodies of parallel that get a defaultdict from a function that they call, too, run one after the other
from collections import defaultdict

def _made() -> dict:
    return defaultdict(list)

def _look(d: dict, p: str) -> int:
    n = len(d) + len(_made())
    tools.read_file(path=p)
    return n + len(d[p])

def t() -> Any:
    """Read."""
    d = _made()
    return parallel(_look(d, p) for p in "ab")
# calls: read_file(path="a") -> "A"
# calls: read_file(path="b") -> "B"
# result: [0, 1]
