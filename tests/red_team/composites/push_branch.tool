def push_branch(branch: str) -> str:
    """Push a branch to the remote origin."""
    answer = tools.git(operation="PUSH", args=["origin", branch])
    if answer["exit_code"] != 0:
        raise ToolError(f"the push failed: {answer['output']}")
    return answer["output"]
