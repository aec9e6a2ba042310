import json
import re
from urllib.parse import urlencode, urljoin


def _get(url: str) -> dict:
    for _ in range(4):
        answer = tools.http_request(url=url)
        if answer["status"] not in (429, 503):
            break
        tools.sleep(seconds=min((answer["retry_after_ms"] or 100) / 1000, 5))
    if answer["status"] != 200:
        raise ToolError(f"{url} answered {answer['status']}")
    return answer


def _next(answer: dict) -> str | None:
    for part in answer["headers"].get("link", "").split(","):
        match = re.search(r'<([^>]+)>\s*;.*rel="?next"?', part)
        if match:
            return urljoin(answer["url"], match[1])
    return None


@example(
    arguments={"url": "https://example.org/issues", "path": "issues.json"},
    files={"issues.json": '{"since": "2024-01-02", "issues": {"1": {"id": 1, "title": "old", "updated_at": "2024-01-02"}}}'},
    stubs={
        "http_request": {
            "$each": [
                {
                    "status": 200,
                    "url": "https://example.org/issues?since=2024-01-02",
                    "headers": {"link": '</issues?page=2>; rel="next"'},
                    "body": '[{"id": 2, "title": "new", "updated_at": "2024-01-05"}]',
                    "truncated": False,
                    "retry_after_ms": None,
                },
                {"status": 429, "url": "", "headers": {}, "body": "", "truncated": False, "retry_after_ms": 10},
                {
                    "status": 200,
                    "url": "https://example.org/issues?page=2",
                    "headers": {},
                    "body": '[{"id": 1, "title": "changed", "updated_at": "2024-01-03"}]',
                    "truncated": False,
                    "retry_after_ms": None,
                },
            ]
        }
    },
    result={"new": [2], "changed": [1], "pages": 2},
)
def sync_issues(url: str, path: str) -> dict:
    """Bring a local copy of a tracker's issues up to date: pages, pauses, and only what is newer than the copy.

    Args:
        url: The address of the list of issues.
        path: The JSON file with the copy; it is made if it is missing.
    """
    try:
        copy = json.loads(tools.read_file(path=path))
    except ToolError as error:
        if error.code != "not_found":
            raise
        copy = {"since": None, "issues": {}}
    here = url if copy["since"] is None else f"{url}?{urlencode({'since': copy['since']})}"
    new, changed, pages = [], [], 0
    latest = copy["since"] or ""
    while here:
        answer = _get(here)
        pages += 1
        for issue in json.loads(answer["body"]):
            key = str(issue["id"])
            if key not in copy["issues"]:
                new.append(issue["id"])
            elif copy["issues"][key] != issue:
                changed.append(issue["id"])
            copy["issues"][key] = issue
            latest = max(latest, issue["updated_at"])
        here = _next(answer)
    copy["since"] = latest or None
    tools.write_file(path=path, content=json.dumps(copy, indent=1, sort_keys=True))
    return {"new": sorted(new), "changed": sorted(changed), "pages": pages}
