def read_notes() -> str:
    """Return the notes of the day."""
    try:
        return tools.read_file(path="notes/today.md")
    except ToolError:
        raise ToolError("there are no notes of today")
---
def daily_report(output: str = "reports/today.md") -> str:
    """Write the notes of the day into a report."""
    try:
        notes = tools.read_notes()
    except ToolError as error:
        notes = error.message
    tools.write_file(path=output, content=f"# Today\n\n{notes}\n")
    return output
