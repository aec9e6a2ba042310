def run_checks() -> dict[str, int]:
    """Run the tests and the linter ruff, and return their exit codes."""
    tests = tools.run_tests()["exit_code"]
    linter = tools.run_linter(linter="ruff")["exit_code"]
    return {"tests": tests, "linter": linter}
