import json


def _rows(database: str, query: str) -> list[dict]:
    answer = tools.run_program(argv=["sqlite3", "-readonly", "-json", database, query])
    if answer["exit_code"]:
        raise ToolError(f"{query}: {answer['stderr']}")
    return json.loads(answer["stdout"] or "[]")


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@example(
    arguments={"database": "a.db", "report": "r.md"},
    stubs={
        "run_program": {
            "$each": [
                {"exit_code": 0, "stdout": '[{"name": "book"}]', "stderr": ""},
                {"exit_code": 0, "stdout": '[{"table": "author", "from": "by", "to": "id"}]', "stderr": ""},
                {"exit_code": 0, "stdout": '[{"id": 3, "value": 9}]', "stderr": ""},
                {"exit_code": 0, "stdout": '[{"name": "by", "notnull": 0}]', "stderr": ""},
                {"exit_code": 0, "stdout": '[{"total": 4, "missing by": 1}]', "stderr": ""},
            ]
        }
    },
    result={"orphans": 1, "tables": 1},
    expect_files={"r.md": "# Check of a.db\n\n## book\n\n- 4 rows\n- by: 25% empty\n- row 3: by = 9 is not in author.id\n"},
)
def check_database(database: str, report: str) -> dict:
    """Check a SQLite database for rows that refer to missing rows and for empty columns, and write a report.

    Args:
        database: The database's file.
        report: The Markdown file to write.
    """
    lines = [f"# Check of {database}"]
    orphans = 0
    tables = _rows(database, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    for table in [row["name"] for row in tables]:
        broken = []
        for key in _rows(database, f"PRAGMA foreign_key_list({_name(table)})"):
            source, target, other = _name(key["from"]), _name(key["to"]), _name(key["table"])
            query = (
                f"SELECT rowid AS id, {source} AS value FROM {_name(table)} WHERE {source} IS NOT NULL "
                f"AND {source} NOT IN (SELECT {target} FROM {other}) ORDER BY rowid"
            )
            for row in _rows(database, query):
                broken.append(f"- row {row['id']}: {key['from']} = {row['value']} is not in {key['table']}.{key['to']}")
        columns = [c["name"] for c in _rows(database, f"PRAGMA table_info({_name(table)})")]
        counts = ", ".join(f"SUM({_name(c)} IS NULL) AS {_name('missing ' + c)}" for c in columns)
        [facts] = _rows(database, f"SELECT COUNT(*) AS total, {counts} FROM {_name(table)}")
        lines += ["", f"## {table}", "", f"- {facts['total']} rows"]
        for column in columns:
            missing = facts.get(f"missing {column}") or 0
            if missing:
                lines.append(f"- {column}: {missing / facts['total']:.0%} empty")
        lines += broken
        orphans += len(broken)
    tools.write_file(path=report, content="\n".join(lines) + "\n")
    return {"orphans": orphans, "tables": len(tables)}
