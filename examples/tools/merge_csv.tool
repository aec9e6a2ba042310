import csv
import io


def _rows(path: str) -> list:
    return list(csv.DictReader(io.StringIO(tools.read_file(path=path))))


@example(
    arguments={"left": "people.csv", "right": "cities.csv", "key": "id", "output": "merged.csv"},
    files={
        "people.csv": "id,name\n1,Ada\n2,Grace\n",
        "cities.csv": "id,city\n2,New York\n3,Paris\n",
    },
    result={"path": "merged.csv", "rows": 3, "matched": 1},
    expect_files={"merged.csv": "id,name,city\n1,Ada,\n2,Grace,New York\n3,,Paris\n"},
)
def merge_csv(left: str, right: str, key: str, output: str) -> dict:
    """Merge two CSV files by a key column; rows without a partner are kept.

    Args:
        left: The first file; its columns and rows come first.
        right: The second file.
        key: The column both have.
        output: The file to write.
    """
    first, second = parallel(_rows(left), _rows(right))
    for path, rows in [(left, first), (right, second)]:
        if rows and key not in rows[0]:
            raise ToolError(f"{path} has no column {key!r}; it has {', '.join(rows[0])}")
    columns = list(dict.fromkeys(name for row in first[:1] + second[:1] for name in row))
    merged = {}
    matched = 0
    for row in first:
        merged[row[key]] = dict(row)
    for row in second:
        if row[key] in merged:
            matched += 1
            merged[row[key]].update(row)
        else:
            merged[row[key]] = dict(row)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in merged.values():
        writer.writerow([row.get(name, "") for name in columns])
    tools.write_file(path=output, content=text.getvalue())
    return {"path": output, "rows": len(merged), "matched": matched}
