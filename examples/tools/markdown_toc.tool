import re


def _anchor(title: str, seen: dict) -> str:
    plain = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
    count = seen.get(plain, 0)
    seen[plain] = count + 1
    return plain if count == 0 else f"{plain}-{count}"


@example(
    arguments={"path": "guide.md"},
    files={
        "guide.md": "# Guide\n\n## First steps\n\n```\n# not a heading\n```\n\n### Install it!\n\n## First steps\n",
    },
    result="- [First steps](#first-steps)\n  - [Install it!](#install-it)\n- [First steps](#first-steps-1)\n",
)
@example(
    arguments={"path": "guide.md", "depth": 2},
    files={"guide.md": "# Guide\n\n## Use\n\n### Notes\n\n## Notes\n\n## Guide\n"},
    result="- [Use](#use)\n- [Notes](#notes-1)\n- [Guide](#guide-1)\n",
)
def markdown_toc(path: str, depth: int = 3) -> str:
    """Make the table of contents of a Markdown file, as a Markdown list.

    The title (the level-1 heading) and the content of code blocks are left out.

    Args:
        path: The Markdown file.
        depth: The deepest level of headings to list.
    """
    lines = []
    seen = {}
    fenced = False
    for line in tools.read_file(path=path).splitlines():
        if line.startswith("```"):
            fenced = not fenced
        heading = None if fenced else re.match(r"(#{1,6})\s+(.*?)\s*#*$", line)
        if heading is None:
            continue
        # Headings that are not listed have anchors too.
        anchor = _anchor(heading[2], seen)
        level = len(heading[1])
        if 2 <= level <= depth:
            lines.append(f"{'  ' * (level - 2)}- [{heading[2]}](#{anchor})\n")
    return "".join(lines)
