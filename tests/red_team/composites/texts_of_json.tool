import json


def texts_of_json(path: str) -> list[str]:
    """Return all texts in a JSON file."""
    return _texts_in(json.loads(tools.read_file(path=path)))


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in inner for text in _texts_in(part)]
