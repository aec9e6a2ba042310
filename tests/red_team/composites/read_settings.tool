import json


def read_settings(path: str = "settings.json") -> dict[str, Any]:
    """Return the settings of the project."""
    settings = json.loads(tools.read_file(path=path))
    match settings:
        case {"version": 1}:
            return {"version": 2, "values": settings}
        case dict():
            return settings
        case _:
            raise ToolError("the settings are no object")
