import hashlib
import re


def _sql(database: str, script: str) -> str:
    answer = tools.run_program(argv=["sqlite3", "-bail", "-separator", "\t", database, script])
    if answer["exit_code"] != 0:
        raise ToolError(answer["stderr"].strip() or answer["stdout"].strip())
    return answer["stdout"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@example(
    arguments={"database": "a.db", "folder": "sql"},
    files={"sql/001_users.sql": "CREATE TABLE users (id);", "sql/002_mail.sql": "ALTER TABLE users ADD mail;", "sql/notes.txt": ""},
    stubs={
        "run_program": {
            "$each": [
                {"exit_code": 0, "stdout": "", "stderr": ""},
                {"exit_code": 0, "stdout": "1\t52ed0f4c3c5ad1aa\n", "stderr": ""},
            ]
        }
    },
    raises="tool_error",
)
def migrate_database(database: str, folder: str) -> dict:
    """Apply the SQL files of a folder that a SQLite database does not have yet, each in a transaction, in the order of their numbers.

    Args:
        database: The database's file.
        folder: The folder with files like 001_create_users.sql. A file that was applied must not change.
    """
    _sql(database, "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT, hash TEXT)")
    applied = {}
    for line in _sql(database, "SELECT number, hash FROM migrations").splitlines():
        number, digest = line.split("\t")
        applied[int(number)] = digest
    found = {}
    for entry in tools.list_directory(path=folder):
        name = entry["path"].split("/")[-1]
        if match := re.fullmatch(r"(\d+)_(\w+)\.sql", name):
            number = int(match[1])
            if number in found:
                raise ToolError(f"{found[number][0]} and {name} have the same number")
            found[number] = (name, tools.read_file(path=entry["path"]))
    done = []
    for number, (name, script) in sorted(found.items()):
        digest = hashlib.sha256(script.encode()).hexdigest()[:16]
        if number in applied:
            if applied[number] != digest:
                raise ToolError(f"{name} has changed after it was applied")
            continue
        if applied and number < max(applied):
            raise ToolError(f"{name} comes before a migration that was applied")
        try:
            _sql(
                database,
                f"BEGIN; {script}\n; INSERT INTO migrations VALUES ({number}, {_quoted(name)}, {_quoted(digest)}); COMMIT;",
            )
        except ToolError as error:
            raise ToolError(f"{name}: {error.message}; applied before it: {', '.join(done) or 'nothing'}") from error
        done.append(name)
    return {"applied": done, "version": max(found, default=0)}
