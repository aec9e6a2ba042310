import csv
import io


def _table(path: str, key: str) -> list:
    rows = [row for row in csv.reader(io.StringIO(tools.read_file(path=path))) if row]
    heading = rows[0] if rows else []
    if key not in heading:
        raise ToolError(f"{path} has no column {key!r}; it has {', '.join(heading) or 'none'}")
    for row in rows:
        if len(row) > len(heading):
            raise ToolError(
                f"{path} has a row with more columns than its heading: {', '.join(row)}",
            )
    return rows


def _rows(table: list) -> list:
    heading, *rows = table
    return [dict(zip(heading, row + [""] * (len(heading) - len(row)))) for row in rows]


@example(
    arguments={"left": "people.csv", "right": "cities.csv", "key": "id", "output": "merged.csv"},
    files={
        "people.csv": "id,name\n1,Ada\n2,Grace\n2,Hopper\n",
        "cities.csv": "id,city\n2,New York\n3,Paris\n",
    },
    result={"path": "merged.csv", "rows": 4, "matched": 2},
    expect_files={
        "merged.csv": "id,name,city\n1,Ada,\n2,Grace,New York\n2,Hopper,New York\n3,,Paris\n",
    },
)
@example(
    arguments={"left": "people.csv", "right": "cities.csv", "key": "id", "output": "people.csv"},
    files={"people.csv": "id,name\n1,Ada\n", "cities.csv": "id,city\n1,Paris\n1,London\n"},
    raises="ToolError",
    expect_files={"people.csv": "id,name\n1,Ada\n"},
)
@example(
    arguments={"left": "none.csv", "right": "cities.csv", "key": "id", "output": "merged.csv"},
    files={"none.csv": "id,name\n", "cities.csv": "id,city\n1,Paris\n"},
    expect_files={"merged.csv": "id,name,city\n1,,Paris\n"},
)
def merge_csv(left: str, right: str, key: str, output: str) -> dict:
    """Merge two CSV files by a key column; rows without a partner are kept.

    The first file may have a key several times: each of these rows gets its partner's columns. In the second file keys must
    be unique.

    Args:
        left: The first file; its columns and rows come first.
        right: The second file; its values win in columns that both have.
        key: The common column.
        output: The file to write.
    """
    first, second = parallel(_table(left, key), _table(right, key))
    partners = {}
    for row in _rows(second):
        if row[key] in partners:
            raise ToolError(f"{right} has the {key} {row[key]!r} more than once")
        partners[row[key]] = row
    merged = [{**row, **partners.get(row[key], {})} for row in _rows(first)]
    keys = {row[key] for row in merged}
    matched = sum(1 for row in merged if row[key] in partners)
    merged.extend(row for name, row in partners.items() if name not in keys)
    columns = list(dict.fromkeys(first[0] + second[0]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in merged:
        writer.writerow([row.get(name, "") for name in columns])
    tools.write_file(path=output, content=text.getvalue())
    return {"path": output, "rows": len(merged), "matched": matched}
