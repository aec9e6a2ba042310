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
def markdown_toc(path: str, depth: int = 3) -> str:
    """Make the table of contents of a Markdown file, as a Markdown list.

    The file's title (its only level-1 heading) is left out, and so is what stands in code blocks.

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
        heading = None if fenced else re.match(r"(#{2,6})\s+(.*?)\s*#*$", line)
        if heading is not None and len(heading[1]) <= depth:
            indent = "  " * (len(heading[1]) - 2)
            lines.append(f"{indent}- [{heading[2]}](#{_anchor(heading[2], seen)})\n")
    return "".join(lines)
