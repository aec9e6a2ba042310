def make_chapters(folder: str, count: int) -> int:
    """Make a file for each chapter of a book."""
    for n in range(count):
        tools.write_file(path=f"{folder}/chapter-{n}.md", content=f"# Chapter {n}\n")
    return count
