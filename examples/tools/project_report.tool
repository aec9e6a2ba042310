def _section(title: str, lines: list) -> str:
    return "\n".join([f"## {title}", "", *(lines or ["Nothing."]), ""])


@example(
    arguments={"output": "report.md"},
    files={"app.py": "x = 1  # TODO: name it\n", "README.md": "# App\n\n[gone](gone.md)\n"},
    result={"path": "report.md", "todos": 1, "broken_links": 1, "duplicates": 0},
    expect_files={
        "report.md": (
            "# Report\n\n## Lines\n\n- Markdown: 2 in 1 files\n- Python: 1 in 1 files\n\n"
            "## To do\n\n- app.py:1 name it\n\n## Broken links\n\n- README.md:3 gone.md\n\n## Duplicates\n\nNothing.\n"
        ),
    },
)
def project_report(output: str, folder: str = ".") -> dict:
    """Write a report on a project: lines by language, TODO comments, broken links, duplicate files.

    Args:
        output: The Markdown file to write.
        folder: The project's folder.
    """
    lines, todos, links, duplicates = parallel(
        tools.count_lines(folder=folder),
        tools.list_todos(folder=folder),
        tools.check_links(folder=folder),
        tools.duplicate_files(folder=folder),
    )
    sections = [
        "# Report\n",
        _section(
            "Lines",
            [f"- {row['language']}: {row['lines']} in {row['files']} files" for row in lines],
        ),
        _section("To do", [f"- {mark['path']}:{mark['line']} {mark['text']}" for mark in todos]),
        _section(
            "Broken links",
            [f"- {link['path']}:{link['line']} {link['target']}" for link in links],
        ),
        _section("Duplicates", [f"- {', '.join(group['paths'])}" for group in duplicates]),
    ]
    tools.write_file(path=output, content="\n".join(sections))
    return {
        "path": output,
        "todos": len(todos),
        "broken_links": len(links),
        "duplicates": len(duplicates),
    }
