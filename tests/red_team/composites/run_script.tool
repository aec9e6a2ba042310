import shlex


def run_script(name: str) -> int:
    """Run a script that the project's file scripts.txt names, and return its exit code."""
    for line in tools.read_file(path="scripts.txt").splitlines():
        key, _, command = line.partition(":")
        if key == name:
            return tools.run_program(argv=shlex.split(command))["exit_code"]
    raise ToolError(f"there is no script {name}")
