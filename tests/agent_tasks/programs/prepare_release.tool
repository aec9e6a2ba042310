import posixpath
import re

_TITLES = {"break": "Changed incompatibly", "feat": "Added", "fix": "Fixed"}


def _git(cwd: str, operation: str, args: list[str]) -> str:
    answer = tools.git(operation=operation, args=args, cwd=cwd)
    if answer["exit_code"] != 0:
        raise ToolError(f"git {operation.lower()} failed: {answer['output']}")
    return answer["output"]


@example(
    arguments={"cwd": "repo"},
    files={"repo/CHANGELOG.md": "# Changes\n\n## 1.2.0\n\n- Older\n"},
    stubs={
        "git_status": {
            "branch": "main",
            "commit": "c",
            "upstream": None,
            "ahead": 0,
            "behind": 0,
            "changed": [],
            "untracked": [],
            "conflicted": [],
            "clean": True,
        },
        "git": {
            "$each": [
                {"exit_code": 0, "output": "v1.2.0\nv1.10.0-rc.1\nold\n"},
                {"exit_code": 0, "output": "a1\x1ffeat(ui): add colours\x1f\n\x1eb2\x1ffix: mend\x1f\n\x1e"},
                {"exit_code": 0, "output": ""},
                {"exit_code": 0, "output": ""},
                {"exit_code": 0, "output": ""},
            ]
        },
    },
    result={"version": "1.3.0", "entries": 2},
    expect_files={
        "repo/CHANGELOG.md": "# Changes\n\n## 1.3.0\n\n### Added\n\n- add colours (a1)\n\n### Fixed\n\n- mend (b2)\n\n## 1.2.0\n\n- Older\n"
    },
)
def prepare_release(cwd: str = "") -> dict:
    """Prepare a release from conventional commits: the next version, the change log, a commit and a tag.

    Args:
        cwd: The repository's folder.
    """
    if not tools.git_status(cwd=cwd)["clean"]:
        raise ToolError("there are changes that are not committed")
    versions = []
    for tag in _git(cwd, "TAG", ["--list"]).split():
        if match := re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag):
            versions.append(tuple(int(g) for g in match.groups()))
    latest = max(versions, default=None)
    span = [] if latest is None else [f"v{latest[0]}.{latest[1]}.{latest[2]}..HEAD"]
    log = _git(cwd, "LOG", ["--format=%h%x1f%s%x1f%b%x1e", "--reverse", *span])
    groups = {"break": [], "feat": [], "fix": []}
    for record in log.split("\x1e"):
        if not record.strip():
            continue
        commit, subject, body = record.strip("\n").split("\x1f")
        match = re.match(r"(\w+)(?:\([^)]*\))?(!?): (.*)", subject)
        if not match:
            continue
        kind, bang, text = match.groups()
        if bang or "BREAKING CHANGE" in body:
            kind = "break"
        if kind in groups:
            groups[kind].append(f"- {text} ({commit})")
    if not any(groups.values()):
        raise ToolError("nothing to release")
    major, minor, patch = latest or (0, 0, 0)
    if groups["break"]:
        version = f"{major + 1}.0.0"
    elif groups["feat"]:
        version = f"{major}.{minor + 1}.0"
    else:
        version = f"{major}.{minor}.{patch + 1}"

    section = f"## {version}\n"
    for kind, entries in groups.items():
        if entries:
            section += f"\n### {_TITLES[kind]}\n\n" + "\n".join(entries) + "\n"
    path = posixpath.join(cwd, "CHANGELOG.md")
    try:
        old = tools.read_file(path=path)
    except ToolError as error:
        if error.code != "not_found":
            raise
        old = "# Changes\n"
    head, mark, rest = old.partition("\n## ")
    new = head.rstrip() + "\n\n" + section + (mark + rest if mark else "")
    tools.write_file(path=path, content=new)
    _git(cwd, "ADD", ["CHANGELOG.md"])
    _git(cwd, "COMMIT", ["-m", f"Release {version}"])
    _git(cwd, "TAG", [f"v{version}"])
    return {"version": version, "entries": sum(len(e) for e in groups.values())}
