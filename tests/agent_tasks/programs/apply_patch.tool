import re
from typing import TypedDict


class Hunk(TypedDict):
    start: int
    lines: list[str]


class FilePatch(TypedDict):
    old: str
    new: str
    hunks: list[Hunk]


def _parse(text: str) -> list[FilePatch]:
    patches, left, right = [], 0, 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.rstrip("\n")
        if left > 0 or right > 0:
            sign = line[0] if bare else " "
            if sign not in " +-\\":
                raise ToolError(f"line {number} of the patch: {bare!r} is in no hunk's form")
            if sign == "\\":
                patches[-1]["hunks"][-1]["lines"][-1] = patches[-1]["hunks"][-1]["lines"][-1].rstrip("\n")
            else:
                patches[-1]["hunks"][-1]["lines"].append(line if bare else " \n")
            left -= sign in " -"
            right -= sign in " +"
        elif bare.startswith("\\"):
            lines = patches[-1]["hunks"][-1]["lines"]
            lines[-1] = lines[-1].rstrip("\n")
        elif bare.startswith("--- "):
            patches.append({"old": bare[4:].split("\t")[0], "new": "", "hunks": []})
        elif bare.startswith("+++ "):
            patches[-1]["new"] = bare[4:].split("\t")[0]
        elif match := re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", bare):
            patches[-1]["hunks"].append({"start": int(match[1]), "lines": []})
            left, right = int(match[2] or 1), int(match[3] or 1)
    return patches


def _apply(path: str, lines: list[str], hunks: list[Hunk]) -> list[str]:
    out, position = [], 0
    for hunk in hunks:
        old = [line[1:] for line in hunk["lines"] if line[0] in " -"]
        wanted = max(hunk["start"] - 1, 0) if old else hunk["start"]
        places = sorted(range(position, len(lines) - len(old) + 1), key=lambda p: abs(p - wanted))
        for place in places:
            if lines[place:place + len(old)] == old:
                break
        else:
            raise ToolError(f"{path}: the hunk at line {hunk['start']} does not fit")
        out += lines[position:place]
        out += [line[1:] for line in hunk["lines"] if line[0] in " +"]
        position = place + len(old)
    return out + lines[position:]


def _name(path: str) -> str:
    return re.sub(r"^[ab]/", "", path)


@example(
    arguments={"patch": "p.diff"},
    files={
        "p.diff": "--- a/x.txt\n+++ b/x.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n",
        "x.txt": "zero\none\ntwo\nthree\n",
    },
    result=["x.txt", "new.txt"],
    expect_files={"x.txt": "zero\none\n2\nthree\n", "new.txt": "hello\n"},
)
@example(
    arguments={"patch": "p.diff"},
    files={
        "p.diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "x": "a\n",
        "y": "c\n",
    },
    raises="tool_error",
    expect_files={"x": "a\n", "y": "c\n"},
)
def apply_patch(patch: str) -> list[str]:
    """Apply a unified diff to the workspace: all of it, or nothing if a hunk does not fit.

    Args:
        patch: The file with the diff.
    """
    results = {}
    for change in _parse(tools.read_file(path=patch)):
        path = _name(change["new"])
        if change["new"] == "/dev/null":
            raise ToolError(f"{change['old']}: deleting files is not supported")
        lines = []
        if change["old"] != "/dev/null":
            lines = tools.read_file(path=_name(change["old"])).splitlines(keepends=True)
        results[path] = "".join(_apply(path, lines, change["hunks"]))
    for path, content in results.items():
        tools.write_file(path=path, content=content)
    return list(results)
