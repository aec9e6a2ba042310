import json


def _call(service: dict, method: str, path: str, value: Any = None) -> Any:
    answer = tools.http_request(
        url=service["url"] + path,
        method=method,
        body=None if value is None else json.dumps(value),
        headers={"authorization": {"secret": service["secret"], "prefix": "Bearer "}},
    )
    if answer["status"] >= 400:
        raise ToolError(f"{service['name']}: {method} {path} answered {answer['status']}")
    return json.loads(answer["body"]) if answer["body"] else None


@example(
    arguments={"path": "services.json", "max_age_days": 90},
    files={"services.json": '[{"name": "mail", "url": "http://mail.test", "secret": "MAIL"}]'},
    stubs={
        "current_time": {"iso": "2024-04-10T00:00:00Z", "unix": 1712707200.0},
        "http_request": {
            "$each": [
                {"status": 200, "body": '[{"id": "k1", "created": 1700000000, "uses": []}, {"id": "k2", "created": 1712000000, "uses": []}]'},
                {"status": 201, "body": '{"id": "k3"}'},
                {"status": 204, "body": ""},
            ]
        },
    },
    result=[{"service": "mail", "rotated": [{"old": "k1", "new": "k3"}], "kept": ["k2"], "error": None}],
)
def rotate_keys(path: str, max_age_days: int) -> list[dict]:
    """Replace the old keys of several services: make a new key, move its uses to it, then revoke the old one.

    Args:
        path: The JSON file with the services: name, url, and the name of the secret that signs in.
        max_age_days: Keys that are older are replaced.
    """
    oldest = tools.current_time()["unix"] - max_age_days * 86400
    report = []
    for service in json.loads(tools.read_file(path=path)):
        entry = {"service": service["name"], "rotated": [], "kept": [], "error": None}
        report.append(entry)
        try:
            for key in _call(service, "GET", "/keys"):
                if key["created"] > oldest:
                    entry["kept"].append(key["id"])
                    continue
                new = _call(service, "POST", "/keys", {"replaces": key["id"]})["id"]
                moved = []
                try:
                    for use in key["uses"]:
                        _call(service, "PUT", f"/uses/{use}", {"key": new})
                        moved.append(use)
                except ToolError:
                    for use in moved:
                        _call(service, "PUT", f"/uses/{use}", {"key": key["id"]})
                    _call(service, "DELETE", f"/keys/{new}")
                    raise
                _call(service, "DELETE", f"/keys/{key['id']}")
                entry["rotated"].append({"old": key["id"], "new": new})
        except ToolError as error:
            entry["error"] = error.message
    return report
