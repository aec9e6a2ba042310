# a parameter is the whole path
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path=path)
# manifest: read_file reads {path}; at most once
# manifest: result from read_file({path})
---
# a constant path
def t() -> str:
    """Read."""
    return tools.read_file(path="notes/today.txt")
# manifest: read_file reads "notes/today.txt"; at most once
# manifest: result from read_file("notes/today.txt")
---
# a constant of the module is folded into the template
FOLDER = "notes"
def t(name: str) -> str:
    """Read."""
    return tools.read_file(path=f"{FOLDER}/{name}.txt")
# manifest: read_file reads notes/{name}.txt; at most once
# manifest: result from read_file(notes/{name}.txt)
---
# both branches of a condition are alternatives
def t(draft: bool) -> None:
    """Write."""
    tools.write_file(path="draft.txt" if draft else "final.txt", content="x")
# manifest: write_file writes "draft.txt" or "final.txt"; at most once
# manifest: > content "x"
# manifest: when and how often is decided by
# manifest: > write_file {draft}
---
# or gives the default of an empty parameter
def t(path: str = "") -> str:
    """Read."""
    return tools.read_file(path=path or "README.md")
# manifest: read_file reads "README.md" or {path}; at most once
# manifest: result from read_file("README.md" or {path})
---
# join keeps the folder
import posixpath
def t(folder: str, name: str) -> str:
    """Read."""
    return tools.read_file(path=posixpath.join(folder, "sub", name))
# manifest: read_file reads {folder}/sub/{name} or {folder}sub/{name} or {name}; at most once
# manifest: result from read_file({folder}/sub/{name} or {folder}sub/{name} or {name})
---
# a path of a listing is below its folder
def t(folder: str) -> list[str]:
    """Read all."""
    return [tools.read_file(path=entry["path"]) for entry in tools.list_directory(path=folder)]
# manifest: list_directory reads {folder}; at most once
# manifest: read_file reads {folder}/**; at most length of list_directory({folder})
# manifest: result from list_directory({folder}), read_file({folder}/**)
---
# a worklist over folders converges to one template
def t(folder: str) -> int:
    """Count the files."""
    pending = [folder]
    count = 0
    for place in pending:
        for entry in tools.list_directory(path=place):
            if entry["type"] == "directory":
                pending.append(entry["path"])
            else:
                count += 1
    return count
# manifest: list_directory reads {folder} or {folder}/**; up to 1,000 ×, the limit of a run
# manifest: result from list_directory({folder} or {folder}/**)
---
# what a file says can be any path, with its origin
def t(path: str) -> None:
    """Delete what a file names."""
    tools.delete_file(path=tools.read_file(path=path))
# manifest: delete_file deletes ‹output of read_file({path})›; at most once
# manifest: read_file reads {path}; at most once
---
# a line of a file is a part of the output
def t(path: str) -> None:
    """Delete the files of a list."""
    for line in tools.read_file(path=path).splitlines():
        tools.delete_file(path="docs/" + line)
# manifest: delete_file deletes docs/‹part of ‹output of read_file({path})››; at most 1 + length of read_file({path})
# manifest: read_file reads {path}; at most once
# manifest: when and how often is decided by
# manifest: > delete_file read_file({path})
---
# the host of a URL is known before a parameter
def t(city: str) -> str:
    """Ask for the weather."""
    return tools.http_request(url="https://weather.example/v1/" + city)["body"]
# manifest: http_request connects to https://weather.example/v1/{city}; at most once
# manifest: result from http_request(https://weather.example/v1/{city})
---
# a host from a parameter is not fixed
def t(host: str) -> str:
    """Fetch."""
    return tools.http_request(url=f"https://{host}/status")["body"]
# manifest: http_request connects to https://{host}/status; THE HOST IS NOT FIXED; at most once
# manifest: result from http_request(https://{host}/status)
---
# a file that is sent away is shown at the payload
def t(path: str) -> None:
    """Send."""
    tools.http_request(url="https://api.example.org/in", method="POST", body=tools.read_file(path=path))
# manifest: http_request connects to "https://api.example.org/in"; at most once
# manifest: > method "POST"
# manifest: > body ‹output of read_file({path})›
# manifest: read_file reads {path}; at most once
---
# a command with a quoted parameter
import shlex
def t(name: str) -> str:
    """Grep."""
    return tools.bash(command="grep -n " + shlex.quote(name) + " notes.txt")["output"]
# manifest: bash runs "grep -n ‹quoted {name}› notes.txt"; at most once
# manifest: result from bash("grep -n ‹quoted {name}› notes.txt")
---
# a path in a container that a helper changes
def _put(row: dict, path: str) -> None:
    row["path"] = path

def t(path: str) -> str:
    """Read."""
    row = {"path": "a.txt"}
    _put(row, path)
    return tools.read_file(path=row["path"])
# manifest: read_file reads "a.txt" or {path}; at most once
# manifest: result from read_file("a.txt" or {path})
---
# an alias changes the same container
def t(path: str) -> str:
    """Read."""
    one = ["a.txt"]
    two = one
    two.append(path)
    return tools.read_file(path=one[-1])
# manifest: read_file reads "a.txt" or {path}; at most once
# manifest: result from read_file("a.txt" or {path})
---
# a number in a name is a number
def t(count: int) -> None:
    """Write parts."""
    for number in range(count):
        tools.write_file(path=f"part-{number}.txt", content="x")
# manifest: write_file writes part-‹number›.txt (from {count}); at most {count}
# manifest: > content "x"
# manifest: when and how often is decided by
# manifest: > write_file {count}
---
# a suffix that is removed and replaced
import posixpath
def t(path: str) -> None:
    """Convert."""
    tools.write_file(path=posixpath.splitext(path)[0] + ".html", content=tools.read_file(path=path))
# manifest: write_file writes ‹part of {path}›.html; at most once
# manifest: > content ‹output of read_file({path})›
# manifest: read_file reads {path}; at most once
# manifest: write_file(‹part of {path}›.html) may write what is read by read_file({path})
---
# a text that a regular expression changes is a text with the same origin
import re
def t(title: str) -> None:
    """Write."""
    tools.write_file(path="posts/" + re.sub("[^a-z]+", "-", title) + ".md", content=title)
# manifest: write_file writes posts/‹ANYTHING from {title}›.md with "[^a-z]+"; at most once
# manifest: > content {title}
---
# an optional argument that is not given is not shown
def t() -> list:
    """List."""
    return tools.list_directory()
# manifest: list_directory at most once
# manifest: result from list_directory
---
# a value that can't leave a program is none of a result or of an argument
def t(times: list[float], path: str, names: dict[str, str]) -> float | None:
    """Find the least time."""
    best = float("inf")
    for time in times:
        if time < best:
            best = time
    content = {"\ud800": "a", "b": names["c"]}
    tools.write_file(path=path or "a\ud800b", content=content.get(str(best), "\ud800"))
    return best if best != float("inf") else None
# manifest: write_file writes {path}; at most once
# manifest: > content "a" or {names.*} with "inf" (from {names}, {times})
# manifest: result from {times}
# manifest: when and how often is decided by
# manifest: > write_file {path}
---
# a piece of a text that can't leave a program may leave it
import posixpath
def t(path: str) -> None:
    """Write."""
    tools.write_file(path=posixpath.normpath("a\ud800/../" + path), content="\ud800b"[1:])
# manifest: write_file writes ANYTHING from {path}; at most once
# manifest: > content ANYTHING
---
# methods of types
def t(name: str, other: str) -> str:
    """Read."""
    for path in set.union({name}, {other}):
        print(tools.read_file(path=path))
    return tools.read_file(path=str.join("/", [name, dict.get({"a": "x"}, "a", other)]))
# manifest: read_file reads {name} or {other} or {name}/{other} or {name}/x; at most 3 ×
# manifest: result from read_file({name}/{other} or {name}/x)
# manifest: printed from {name}, {other}, read_file({name} or {other})
---
# an imported constant of a module
from string import digits
from sys import maxsize
def t() -> str:
    """Read."""
    return tools.read_file(path=f"{digits}-{maxsize}")
# manifest: read_file reads "0123456789-9223372036854775807"; at most once
# manifest: result from read_file("0123456789-9223372036854775807")
---
# format of a literal is a template
def t(folder: str, name: str, n: int) -> Any:
    """Write."""
    tools.write_file(path="{}/{}.txt".format(folder, name), content="a")
    tools.write_file(path="{1}-{0:03}.txt".format(n, name), content="a")
    tools.write_file(path="{f}/{x}".format(f=folder, x=tools.read_file(path="a")), content="a")
    tools.write_file(path="{:>9}".format(name), content="a")
# manifest: write_file writes {folder}/{name}.txt or {name}-‹ANYTHING from {n}›.txt or {folder}/‹output of read_file("a")› or ANYTHING from {name}; at most 4 ×
# manifest: > content "a"
# manifest: read_file reads "a"; at most once
# manifest: write_file({folder}/{name}.txt) may write what is read by read_file("a")
# manifest: write_file({name}-‹ANYTHING›.txt) may write what is read by read_file("a")
# manifest: write_file({folder}/‹output of read_file(…)›) may write what is read by read_file("a")
---
# a path below a folder, without the folder
import posixpath


def t(folder: str, target: str) -> None:
    """Copy."""
    for path in tools.find_files(pattern="*.md", path=folder)["paths"]:
        tools.write_file(path=posixpath.join(target, posixpath.relpath(path, folder)), content="")
    for path in tools.find_files(pattern="*.md", path="docs")["paths"]:
        tools.write_file(path=f"{target}/{path.removeprefix('docs/')}", content="1")
        tools.write_file(path=f"out/{path[len('docs/'):]}", content="2")
        tools.write_file(path=posixpath.join("names", path.split("/")[-1]), content="3")
        tools.write_file(path=posixpath.splitext(path)[0] + ".html", content="4")
        tools.write_file(path=path.replace(".md", ".."), content="5")
# manifest: write_file writes {target}/** or out/** or names/** or docs/**.html or ANYTHING from find_files("docs") with "docs", "..", ".md"; up to 1,000 ×, the limit of a run
# manifest: > chosen by path.split('/')[-1]
# manifest: > content "" or "1" or "2" or "3" or "4" or "5"
# manifest: find_files reads {folder} or "docs"; at most 2 ×
# manifest: write_file({target}/**) may write what is read by find_files("docs")
# manifest: when and how often is decided by
# manifest: > write_file find_files("docs"), find_files({folder})
---
# a path without another folder than its own
import posixpath


def t(folder: str, other: str, target: str) -> None:
    """Copy."""
    for path in tools.find_files(pattern="*.md", path=folder)["paths"]:
        tools.write_file(path=posixpath.join(target, posixpath.relpath(path, other)), content="1")
        tools.write_file(path=f"{target}/{path.removeprefix(folder + '/')}", content="2")
# manifest: write_file writes ANYTHING from {other}, {target}, find_files({folder}) or {target}/{folder}/** or {target}/**; up to 1,000 ×, the limit of a run
# manifest: > content "1" or "2"
# manifest: find_files reads {folder}; at most once
# manifest: when and how often is decided by
# manifest: > write_file {folder}, find_files({folder})
---
# the last name of any text stays in the folder that it is joined to
import posixpath


def t(folder: str, path: str) -> None:
    """Write."""
    for line in tools.read_file(path="index").splitlines():
        tools.write_file(path=posixpath.join("out", posixpath.basename(line)), content="1")
    tools.write_file(path=f"{folder}/{path.split('/')[-1]}", content="2")
# manifest: write_file writes out/‹name from read_file("index")› or {folder}/‹name in {path}›; at most 2 + length of read_file("index")
# manifest: > chosen by path.split('/')[-1]
# manifest: > content "1" or "2"
# manifest: read_file reads "index"; at most once
# manifest: when and how often is decided by
# manifest: > write_file {path}, read_file("index")
