def _git(operation: str, args: list[str], cwd: str) -> str:
    answer = tools.git(operation=operation, args=args, cwd=cwd)
    if answer["exit_code"] != 0:
        raise ToolError(answer["output"].strip())
    return answer["output"].strip()


@example(
    arguments={"good": "v1", "command": ["make", "check"]},
    stubs={
        "git_status": {"branch": "main", "commit": "d", "upstream": None, "ahead": 0, "behind": 0, "changed": [], "untracked": [], "conflicted": [], "clean": True},
        "git": {"$each": [
            {"exit_code": 0, "output": "a\nb\nc\nd\n"},
            {"exit_code": 0, "output": ""},
            {"exit_code": 0, "output": ""},
            {"exit_code": 0, "output": ""},
            {"exit_code": 0, "output": ""},
            {"exit_code": 0, "output": "Break it\n"},
        ]},
        "run_program": {"$each": [{"exit_code": 1}, {"exit_code": 0}, {"exit_code": 1}]},
    },
    result={"commit": "c", "subject": "Break it", "tried": {"d": False, "b": True, "c": False}},
)
def find_first_bad(good: str, command: list[str], cwd: str = "") -> dict:
    """Find the first commit at which a command fails, by bisection. The branch is checked out again at the end.

    Args:
        good: A commit or tag at which the command succeeds.
        command: The program and its arguments.
        cwd: The repository's folder.
    """
    status = tools.git_status(cwd=cwd)
    if not status["clean"]:
        raise ToolError("there are changes that are not committed")
    back = status["branch"] or status["commit"]
    commits = _git("LOG", ["--format=%H", "--reverse", f"{good}..HEAD"], cwd).split()
    tried = {}

    def succeeds(index):
        commit = commits[index]
        if commit not in tried:
            _git("CHECKOUT", ["--quiet", commit], cwd)
            tried[commit] = tools.run_program(argv=command, cwd=cwd)["exit_code"] == 0
        return tried[commit]

    try:
        if not commits or succeeds(len(commits) - 1):
            raise ToolError("the command succeeds at HEAD")
        low, high = -1, len(commits) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if succeeds(middle):
                low = middle
            else:
                high = middle
    finally:
        _git("CHECKOUT", ["--quiet", back], cwd)
    return {"commit": commits[high], "subject": _git("SHOW", ["--no-patch", "--format=%s", commits[high]], cwd), "tried": tried}
