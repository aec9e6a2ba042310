import json

_STEPS = {
    "planned": {"approve": "approved", "cancel": "cancelled"},
    "approved": {"start": "running", "cancel": "cancelled"},
    "running": {"succeed": "done", "fail": "failed"},
    "failed": {"retry": "running", "roll_back": "rolled back"},
    "done": {"roll_back": "rolled back"},
}


@example(
    arguments={"path": "d/web.json", "event": "fail", "by": "ann"},
    files={"d/web.json": '{"state": "running", "attempts": 3, "history": []}'},
    stubs={"current_time": {"iso": "2024-01-01T00:00:00Z", "unix": 1704067200.0}},
    result={"state": "rolled back", "attempts": 3},
)
@example(arguments={"path": "d/web.json", "event": "start", "by": "ann"}, raises="tool_error")
def advance_deploy(
    path: str, event: Literal["approve", "cancel", "start", "succeed", "fail", "retry", "roll_back"], by: str
) -> dict:
    """Move a deployment to its next state and keep its history. A third failure rolls it back.

    Args:
        path: The deployment's file; a missing one is a new deployment.
        event: What happened.
        by: Who says so. The person who has planned it can't approve it.
    """
    try:
        deploy = json.loads(tools.read_file(path=path))
    except ToolError as error:
        if error.code != "not_found":
            raise
        deploy = {"state": "planned", "attempts": 0, "history": [], "planned_by": by}
    allowed = _STEPS.get(deploy["state"], {})
    if event not in allowed:
        raise ToolError(f"{event} is not possible while {deploy['state']}; possible: {', '.join(allowed) or 'nothing'}")
    if event == "approve" and deploy.get("planned_by") == by:
        raise ToolError(f"{by} has planned it, and can't approve it")
    now = tools.current_time()["iso"]
    before, deploy["state"] = deploy["state"], allowed[event]
    deploy["history"].append({"at": now, "by": by, "from": before, "event": event})
    if deploy["state"] == "running":
        deploy["attempts"] += 1
    if deploy["state"] == "failed" and deploy["attempts"] >= 3:
        deploy["history"].append({"at": now, "by": "three failures", "from": "failed", "event": "roll_back"})
        deploy["state"] = "rolled back"
    tools.write_file(path=path, content=json.dumps(deploy, indent=2) + "\n")
    return {"state": deploy["state"], "attempts": deploy["attempts"]}
