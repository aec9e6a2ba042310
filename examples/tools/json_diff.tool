import json


def _load(path: str) -> Any:
    try:
        return json.loads(tools.read_file(path=path))
    except json.JSONDecodeError as error:
        raise ToolError(f"{path} is not JSON: {error}") from error


def _differences(old: Any, new: Any, at: str) -> list:
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            place = f"{at}.{key}"
            if key not in new:
                found.append({"at": place, "change": "removed", "old": old[key]})
            elif key not in old:
                found.append({"at": place, "change": "added", "new": new[key]})
            else:
                found.extend(_differences(old[key], new[key], place))
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            d
            for i, pair in enumerate(zip(old, new))
            for d in _differences(pair[0], pair[1], f"{at}[{i}]")
        ]
    if old == new and isinstance(old, bool) == isinstance(new, bool):
        return []
    return [{"at": at, "change": "changed", "old": old, "new": new}]


@example(
    arguments={"old": "a.json", "new": "b.json"},
    files={
        "a.json": '{"name": "x", "tags": [1, 2], "gone": null}',
        "b.json": '{"name": "y", "tags": [1, 3]}',
    },
    result=[
        {"at": "$.gone", "change": "removed", "old": None},
        {"at": "$.name", "change": "changed", "old": "x", "new": "y"},
        {"at": "$.tags[1]", "change": "changed", "old": 2, "new": 3},
    ],
)
@example(
    arguments={"old": "a.json", "new": "b.json"},
    files={"a.json": "{", "b.json": "{}"},
    raises="ToolError",
)
def json_diff(old: str, new: str) -> list[dict]:
    """List the differences between two JSON files, each with its place ("$.tags[1]").

    Args:
        old: The old file.
        new: The new file.
    """
    before, after = parallel(_load(old), _load(new))
    return _differences(before, after, "$")
