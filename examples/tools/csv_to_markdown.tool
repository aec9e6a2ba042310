import csv
import io


@example(
    arguments={"path": "t.csv"},
    files={"t.csv": "name,age\nAda,36\n\"Hopper, Grace\",85|86\n"},
    result="| name | age |\n|---|---:|\n| Ada | 36 |\n| Hopper, Grace | 85\\|86 |\n",
)
def csv_to_markdown(path: str, delimiter: str = ",") -> str:
    """Convert a CSV file to a Markdown table; columns of numbers are aligned to the right.

    Args:
        path: The CSV file; its first row is the heading.
        delimiter: The separator of columns.
    """
    rows = list(csv.reader(io.StringIO(tools.read_file(path=path)), delimiter=delimiter))
    if not rows:
        raise ToolError(f"{path} is empty")
    width = max(len(row) for row in rows)
    cells = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] + [""] * (width - len(row))
        for row in rows
    ]
    rules = []
    for column in range(width):
        values = [row[column] for row in cells[1:] if row[column]]
        numeric = values and all(value[0].isdigit() or value[0] in "+-." for value in values)
        rules.append("---:" if numeric else "---")
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"|{'|'.join(rules)}|", *lines[1:]]) + "\n"
