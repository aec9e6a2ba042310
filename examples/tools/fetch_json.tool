import json


@example(
    arguments={"url": "https://api.example.org/things"},
    stubs={
        "http_request": {
            "$each": [{"status": 503, "body": "busy"}, {"status": 200, "body": "{\"things\": 3}"}],
        },
        "sleep": None,
    },
    result={"things": 3},
)
@example(
    arguments={"url": "https://api.example.org/things"},
    stubs={"http_request": {"status": 404, "body": "no"}},
    raises="ToolError",
)
def fetch_json(url: str, attempts: int = 3) -> Any:
    """Fetch JSON from the web, and retry while the server is busy.

    Args:
        url: The address.
        attempts: The most attempts.
    """
    status = 0
    for attempt in range(attempts):
        answer = tools.http_request(url=url, headers={"accept": "application/json"})
        status = answer["status"]
        if status == 200:
            return json.loads(answer["body"])
        if status not in (429, 502, 503, 504):
            break
        tools.sleep(seconds=min(2**attempt, 30))
    raise ToolError(f"{url} answered {status}", retryable=status >= 429)
