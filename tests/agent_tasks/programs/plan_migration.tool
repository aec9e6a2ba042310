import re


def _split(text: str) -> list:
    """Split at the commas outside of parentheses and quotes."""
    parts, depth, quoted, current = [], 0, False, ""
    for c in text:
        if c == "'":
            quoted = not quoted
        elif not quoted and c == "(":
            depth += 1
        elif not quoted and c == ")":
            depth -= 1
        if c == "," and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    parts.append(current.strip())
    return [p for p in parts if p]


def _tables(sql: str) -> dict:
    sql = re.sub(r"('[^']*')|--[^\n]*|/\*.*?\*/", lambda m: m[1] or "", sql, flags=re.DOTALL)
    tables = {}
    for match in re.finditer(r"create\s+table\s+(?:if\s+not\s+exists\s+)?(\w+)\s*\(", sql, re.IGNORECASE):
        depth, quoted, end = 1, False, match.end()
        while depth:
            if end >= len(sql):
                raise ToolError(f"the parenthesis of table {match[1]} is not closed")
            if sql[end] == "'":
                quoted = not quoted
            elif not quoted:
                depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        columns = {}
        for part in _split(sql[match.end():end - 1]):
            words = part.split(None, 1)
            if words[0].lower() in ("primary", "foreign", "unique", "check", "constraint"):
                continue
            columns[words[0]] = " ".join(words[1].split()) if len(words) > 1 else ""
        tables[match[1]] = columns
    return tables


@example(
    arguments={"old": "a.sql", "new": "b.sql"},
    files={
        "a.sql": "CREATE TABLE t (id INTEGER PRIMARY KEY, n DECIMAL(10, 2)); create table gone(x);",
        "b.sql": "CREATE TABLE t (id INTEGER PRIMARY KEY, -- the key, once\n n TEXT, m TEXT DEFAULT 'a, (b');\nCREATE TABLE u (v INT);",
    },
    result={
        "statements": ["CREATE TABLE u (v INT);", "ALTER TABLE t ADD COLUMN m TEXT DEFAULT 'a, (b';", "DROP TABLE gone;"],
        "by_hand": ["t.n: DECIMAL(10, 2) becomes TEXT"],
    },
)
def plan_migration(old: str, new: str) -> dict:
    """Compare the tables of two SQL files and list the statements that lead from one to the other.

    Args:
        old: The SQL file with today's tables.
        new: The SQL file with the wanted tables.
    """
    before, after = parallel(_tables(tools.read_file(path=p)) for p in (old, new))
    statements, by_hand = [], []
    for name, columns in after.items():
        if name not in before:
            listed = ", ".join(f"{c} {t}".strip() for c, t in columns.items())
            statements.append(f"CREATE TABLE {name} ({listed});")
    for name in after.keys() & before.keys():
        for column, kind in after[name].items():
            if column not in before[name]:
                statements.append(f"ALTER TABLE {name} ADD COLUMN {column} {kind};")
            elif before[name][column].lower() != kind.lower():
                by_hand.append(f"{name}.{column}: {before[name][column]} becomes {kind}")
        for column in before[name]:
            if column not in after[name]:
                statements.append(f"ALTER TABLE {name} DROP COLUMN {column};")
    statements += [f"DROP TABLE {name};" for name in sorted(before.keys() - after.keys())]
    return {"statements": statements, "by_hand": sorted(by_hand)}
