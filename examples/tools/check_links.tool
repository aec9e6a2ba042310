import posixpath
import re
import urllib.parse


def _broken(path: str, known: list) -> list:
    found = []
    for number, line in enumerate(tools.read_file(path=path).splitlines(), start=1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            place = urllib.parse.unquote(target.split("#")[0])
            if not place or re.match(r"[a-z]+:", place) is not None:
                continue
            if posixpath.normpath(posixpath.join(posixpath.dirname(path), place)) not in known:
                found.append({"path": path, "line": number, "target": target})
    return found


@example(
    arguments={},
    files={
        "README.md": "See [the guide](docs/guide.md), [here](#top), [web](https://example.org) and [this](gone.md).\n",
        "docs/guide.md": "Back to [the start](../README.md#top).\n",
    },
    result=[{"path": "README.md", "line": 1, "target": "gone.md"}],
)
def check_links(folder: str = ".") -> list[dict]:
    """Find links between Markdown files that lead nowhere.

    Args:
        folder: Where to look, folders under it included.
    """
    known = [
        posixpath.normpath(e["path"])
        for e in tools.list_directory(path=folder, recursive=True)
    ]
    pages = [path for path in known if path.endswith(".md")]
    return [link for links in parallel(_broken(page, known) for page in pages) for link in links]
