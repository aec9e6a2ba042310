import posixpath
from collections import Counter

LANGUAGES = {
    ".py": "Python",
    ".js": "JavaScript",
    ".ts": "TypeScript",
    ".c": "C",
    ".h": "C",
    ".go": "Go",
    ".rs": "Rust",
    ".md": "Markdown",
    ".sh": "Shell",
    ".html": "HTML",
    ".css": "CSS",
}


def _count(path: str) -> int:
    try:
        return len([line for line in tools.read_file(path=path).splitlines() if line.strip()])
    except ToolError as error:
        print(f"{path} was skipped: {error.message}")
        return 0


@example(
    arguments={},
    files={"a.py": "x = 1\n\ny = 2\n", "b/c.py": "z = 3\n", "r.md": "# R\n", "d.bin": "?"},
    result=[
        {"language": "Python", "files": 2, "lines": 3},
        {"language": "Markdown", "files": 1, "lines": 1},
    ],
)
def count_lines(folder: str = ".") -> list[dict]:
    """Count the non-empty lines of a project by language, highest count first.

    Args:
        folder: The project's folder.
    """
    files = []
    for entry in tools.list_directory(path=folder, recursive=True):
        language = LANGUAGES.get(posixpath.splitext(entry["path"])[1])
        if entry["type"] == "file" and language is not None:
            files.append((language, entry["path"]))
    counts = parallel(_count(path) for language, path in files)
    lines = Counter()
    number = Counter()
    for (language, _), count in zip(files, counts):
        lines[language] += count
        number[language] += 1
    return [
        {"language": name, "files": number[name], "lines": count}
        for name, count in lines.most_common()
    ]
