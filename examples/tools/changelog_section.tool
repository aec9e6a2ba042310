import re


@example(
    arguments={"version": "1.1"},
    files={
        "CHANGELOG.md": "# Changelog\n\n## 1.2\n\n- new\n\n## 1.1 (2025-01-01)\n\n- old\n- older\n\n## 1.0\n",
    },
    result="- old\n- older\n",
)
@example(arguments={"version": "9"}, files={"CHANGELOG.md": "## 1.0\n"}, raises="ToolError")
def changelog_section(version: str, path: str = "CHANGELOG.md") -> str:
    """Return the section of one version of a changelog in Markdown.

    Args:
        version: The version, as in its heading.
        path: The changelog.
    """
    taken = []
    inside = False
    for line in tools.read_file(path=path).splitlines():
        heading = re.match(r"##\s+\[?v?([^\]\s]+)", line)
        if heading is not None:
            if inside:
                break
            inside = heading[1] == version
        elif inside:
            taken.append(line)
    if not inside and not taken:
        raise ToolError(f"{path} has no section {version!r}")
    return "\n".join(taken).strip() + "\n"
