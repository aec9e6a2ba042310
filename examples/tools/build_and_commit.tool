import hashlib


@example(
    arguments={
        "path": "area.py",
        "source": "def area(w, h):\n    return w + h\n",
        "wrong": "w + h",
        "right": "w * h",
        "tests": "test_area.py",
        "message": "Areas",
    },
    stubs={
        "run_tests": {
            "$each": [
                {"exit_code": 1, "stdout": "1 failed", "stderr": ""},
                {"exit_code": 0, "stdout": "1 passed", "stderr": ""},
            ],
        },
        "git": {"exit_code": 0, "output": "", "truncated": False, "signal": None},
        "git_status": {"commit": "0123abc", "clean": True},
    },
    result={
        "commit": "0123abc",
        "sha256": "0bc466c1ba211f5fcd29f0e25ccb7c66648aa6cdae0b2c154d89ff30f76b3d85",
        "clean": True,
    },
    expect_files={"area.py": "def area(w, h):\n    return w * h\n"},
)
@example(
    arguments={
        "path": "a.py",
        "source": "x = 1\n",
        "wrong": "1",
        "right": "2",
        "tests": "test_a.py",
        "message": "x",
    },
    stubs={"run_tests": {"exit_code": 1, "stdout": "1 failed", "stderr": ""}},
    raises="ToolError",
)
def build_and_commit(
    path: str,
    source: str,
    wrong: str,
    right: str,
    tests: str,
    message: str,
) -> dict:
    """Write a program, check that its tests fail, fix it, check that they pass, and commit it.

    Args:
        path: The file to write.
        source: Its content.
        wrong: The mistake in it, a text that occurs once.
        right: The text that replaces the mistake.
        tests: The file with its tests.
        message: The commit message.
    """
    written = tools.write_file(path=path, content=source)
    info = tools.file_info(path=path)
    read = hashlib.sha256(tools.read_file(path=path).encode()).hexdigest()
    if not written["sha256"] == info["sha256"] == read:
        raise ToolError(f"{path} differs from what was written")
    if tools.run_tests(args=["-q", tests])["exit_code"] != 1:
        raise ToolError(f"{tests} does not find the mistake")
    fixed = tools.edit_file(path=path, old_text=wrong, new_text=right)
    tested = tools.run_tests(args=["-q", tests])
    if tested["exit_code"] != 0:
        raise ToolError(f"the tests fail: {tested['stdout'][-500:]}")
    steps: list[tuple[Literal["ADD", "COMMIT"], list[str]]] = [
        ("ADD", ["--", path, tests]),
        ("COMMIT", ["-m", message]),
    ]
    for operation, arguments in steps:
        answer = tools.git(operation=operation, args=arguments)
        if answer["exit_code"] != 0:
            raise ToolError(f"git failed: {answer['output']}")
    status = tools.git_status()
    return {"commit": status["commit"], "sha256": fixed["sha256"], "clean": status["clean"]}
