import posixpath
import re
import urllib.parse


def _broken(path: str, folder: str, known: set) -> list:
    found = []
    for number, line in enumerate(tools.read_file(path=path).splitlines(), start=1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            place = urllib.parse.unquote(target.split("#")[0])
            if not place or re.match(r"[a-z]+:", place) is not None:
                continue
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), place))
            inside = (
                not place.startswith(("../", "/"))
                if folder == "."
                else place.startswith(f"{folder}/")
            )
            if inside and place not in known:
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
@example(
    arguments={"folder": "docs"},
    files={"README.md": "R\n", "docs/a.md": "[out](../README.md), [here](./), [this](gone.md)\n"},
    result=[{"path": "docs/a.md", "line": 1, "target": "gone.md"}],
)
def check_links(folder: str = ".") -> list[dict]:
    """Find broken links between Markdown files. Links to places outside the folder are not checked.

    Args:
        folder: The folder to search, with its subfolders.
    """
    top = posixpath.normpath(folder)
    entries = tools.list_directory(path=folder, recursive=True)
    known = {top, *(posixpath.normpath(e["path"]) for e in entries)}
    pages = [e["path"] for e in entries if e["type"] == "file" and e["path"].endswith(".md")]
    found = parallel(_broken(page, top, known) for page in pages)
    return [link for links in found for link in links]
