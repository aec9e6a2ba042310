import json


def font_theme(dark: bool) -> dict[str, str]:
    """Return the fonts of the light or dark theme in the folder themes."""
    base = "themes/" + ("dark" if dark else "light") + ".json"
    return json.loads(tools.read_file(path=base))
