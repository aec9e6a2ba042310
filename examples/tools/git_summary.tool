from collections import Counter


@example(
    arguments={"days": 7},
    stubs={
        "git": {
            "exit_code": 0,
            "output": "Ada\nGrace\nAda\n",
            "truncated": False,
            "signal": None,
            "size_bytes": 14,
            "handle": None,
            "confinement": "bwrap",
        },
    },
    result={
        "commits": 3,
        "authors": [{"name": "Ada", "commits": 2}, {"name": "Grace", "commits": 1}],
    },
)
def git_summary(days: int = 30) -> dict:
    """Count the commits of the last days, by author.

    Args:
        days: How far to look back.
    """
    if days < 1:
        raise ToolError("days must be 1 or more")
    answer = tools.git(operation="LOG", args=[f"--since={days} days ago", "--format=%an"])
    if answer["exit_code"] != 0:
        raise ToolError(f"git failed: {answer['output'].strip()}")
    names = Counter(answer["output"].splitlines())
    return {
        "commits": sum(names.values()),
        "authors": [{"name": name, "commits": count} for name, count in names.most_common()],
    }
