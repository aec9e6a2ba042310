import hashlib
import json


@example(
    arguments={"url": "http://jobs.test", "query": "select 1", "target": "out.txt"},
    stubs={
        "http_request": {
            "$each": [
                {"status": 202, "body": '{"id": "j1"}'},
                {"status": 200, "body": '{"state": "queued"}'},
                {"status": 200, "body": '{"state": "running", "percent": 50}'},
                {
                    "status": 200,
                    "body": '{"state": "finished", "result": "/r/1", "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}',
                },
                {"status": 200, "body": "hello"},
            ]
        },
        "sleep": None,
    },
    result={"job": "j1", "states": ["queued", "running", "finished"], "size_bytes": 5},
    expect_files={"out.txt": "hello"},
)
def run_remote_job(url: str, query: str, target: str, polls: int = 20) -> dict:
    """Start a job at a service, wait until it is finished with growing pauses, and save its result if the hash is right.

    Args:
        url: The address of the service.
        query: What the job runs.
        target: The file for the result.
        polls: How often to ask; then the job is cancelled.
    """
    answer = tools.http_request(url=f"{url}/jobs", method="POST", body=json.dumps({"query": query}))
    if answer["status"] != 202:
        raise ToolError(f"the job was not accepted: {answer['status']} {answer['body']}")
    job = json.loads(answer["body"])["id"]
    states, pause = [], 0.1
    for _ in range(polls):
        status = json.loads(tools.http_request(url=f"{url}/jobs/{job}")["body"])
        if not states or states[-1] != status["state"]:
            states.append(status["state"])
            print(f"{job} is {status['state']}")
        match status:
            case {"state": "finished", "result": result, "sha256": digest}:
                body = tools.http_request(url=url + result)["body"]
                if hashlib.sha256(body.encode()).hexdigest() != digest:
                    raise ToolError(f"the result of {job} is damaged")
                saved = tools.write_file(path=target, content=body)
                return {"job": job, "states": states, "size_bytes": saved["size_bytes"]}
            case {"state": "failed", "reason": reason}:
                raise ToolError(f"{job} failed: {reason}")
            case _:
                tools.sleep(seconds=pause)
                pause = min(pause * 2, 2)
    tools.http_request(url=f"{url}/jobs/{job}", method="DELETE")
    raise ToolError(f"{job} is not finished; it was cancelled")
