import json
import re


def newest_version(project: str) -> str:
    """Return the newest version of a project, by the register at register.example.org."""
    if not re.fullmatch(r"[a-z0-9_-]+", project):
        raise ToolError("that is no name of a project")
    answer = tools.http_request(url=f"https://register.example.org/projects/{project}/latest")
    return str(json.loads(answer["body"])["version"])
