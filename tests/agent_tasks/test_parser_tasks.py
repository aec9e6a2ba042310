"""Tasks whose tool is a parser. Each docstring is what the user has asked for."""

from __future__ import annotations

import datetime
import json
import re

import pytest

from albert_tools import Failure
from tests.agent_tasks.conftest import Desk


def test_evaluate_sheet(desk: Desk) -> None:
    """Evaluate the formulas of a CSV file: + - * /, parentheses, SUM, MAX and AVERAGE over cells and ranges. Errors are values
    (#DIV/0!, #NAME?, #CYCLE, #VALUE!), and go through the formulas that use them."""
    desk.write(
        {
            "s.csv": "item,price,count,total\n"
            "pen,1.5,4,=B2*C2\n"
            'ink,20,2,"=B3*(C3-1)/ 2"\n'
            ',,,"=SUM(D2:D3, 100)"\n'
            "=A5,=D4/C4,=A1+1,=MIN(1)\n"
            '=C6,"=AVERAGE(B2:B3)",=A6,-3\n'
            "=-D6*-2,=MAX(B2:C3),=B5+1,\n"
        }
    )
    assert desk.call("evaluate_sheet", path="s.csv") == [
        ["item", "price", "count", "total"],
        ["pen", 1.5, 4, 6],
        ["ink", 20, 2, 10],
        ["", "", "", 116],
        ["#CYCLE", "#DIV/0!", "#VALUE!", "#NAME?"],
        ["#CYCLE", 10.75, "#CYCLE", -3],
        [-6, 20, "#DIV/0!", ""],
    ]


def test_render_template(desk: Desk) -> None:
    """Render a template with a JSON file's values: {{ value | filter }}, for and if, nested. A mistake names its line."""
    desk.write(
        {
            "page.txt": "# {{ title | upper }}\n{% for s in sections %}## {{ loop.index }}. {{ s.name }}\n"
            "{% if s.items %}{% for i in s.items %}- {{ i | escape }}\n{% endfor %}{% else %}(none)\n{% endif %}"
            "{% if not loop.last %}---\n{% endif %}{% endfor %}{{ tags | join ', ' }}; {{ sections | length }};"
            " {{ note | default '-' }}\n",
            "d.json": json.dumps(
                {
                    "title": "news",
                    "sections": [{"name": "One", "items": ["a<b", "c"]}, {"name": "Two", "items": []}],
                    "tags": ["x", "y"],
                    "note": "",
                }
            ),
            "bad.txt": "ok\n{% for x in tags %}\n{% endif %}\n",
            "missing.txt": "\n\n{% for s in sections %}{{ s.nam }}{% endfor %}",
        }
    )
    desk.call("render_template", template="page.txt", data="d.json", target="out.txt")
    expected = "# NEWS\n## 1. One\n- a&lt;b\n- c\n---\n## 2. Two\n(none)\nx, y; 2; -\n"
    assert desk.read("out.txt") == expected
    with pytest.raises(Failure, match="line 3: endif closes the for of line 2"):
        desk.call("render_template", template="bad.txt", data="d.json", target="out.txt")
    with pytest.raises(Failure, match=r"line 3: s\.nam is not defined"):
        desk.call("render_template", template="missing.txt", data="d.json", target="out.txt")
    assert desk.read("out.txt") == expected


def test_query_json(desk: Desk) -> None:
    """Answer JSONPath queries about a file, with slices, descendants, and filters with &&, ||, ! and parentheses."""
    store = {
        "books": [
            {"title": "A", "price": 8.95, "by": {"name": "N"}},
            {"title": "B", "price": 12.99, "by": {"name": "M"}, "isbn": "1"},
            {"title": "C", "price": 8, "by": {"name": "N"}, "isbn": "2"},
        ],
        "limit": 9,
        "my key": {"price": "free"},
    }
    desk.write({"store.json": json.dumps(store)})
    for query, expected in {
        "$.books[*].title": ["A", "B", "C"],
        "$.books[-1].title": ["C"],
        "$.books[:2].by.name": ["N", "M"],
        "$..price": [8.95, 12.99, 8, "free"],
        "$['my key']": [{"price": "free"}],
        "$.books[?(@.isbn && @.price < 10)].title": ["C"],
        "$.books[?(!@.isbn || (@.by.name == 'M' && @.price > 12))].title": ["A", "B"],
        "$.books[?(@.price < $.limit)].title": ["A", "C"],
        "$.nothing[0].at.all": [],
        "$..[?(@.name == 'M')]": [{"name": "M"}],
    }.items():
        assert desk.call("query_json", path="store.json", query=query) == expected, query
    for wrong in ("books", "$.books[0", "$.books[?(@.price <)]", "$.books{}"):
        with pytest.raises(Failure) as refused:
            desk.call("query_json", path="store.json", query=wrong)
        assert refused.value.code == "tool_error", wrong


def test_read_config(desk: Desk) -> None:
    """Read an INI file with includes, continued lines and ${section:key}. A cycle of files or of values is an error."""
    desk.write(
        {
            "etc/app.conf": "; main\nname = shop\nenv=prod\n[paths]\nhome = /srv/${main:name}\nlog = ${home}/log\n"
            "include parts/db.conf\n[db]\nhost = db.${main:env}\n[empty]\n",
            "etc/parts/db.conf": "[db]\nhost = localhost\noptions = a=1 \\\n   b=2 \\\n   c=3\n"
            "url = ${host}:${port}\nport = 5\ninclude ../more.conf\n",
            "etc/more.conf": "# more\nflag = on\n",
            "loop.conf": "include ./loop2.conf\n",
            "loop2.conf": "include loop.conf\n",
            "self.conf": "a = ${b}\nb = x${main:a}\n",
            "bad.conf": "[x]\na = 1\nwhat\n",
        }
    )
    assert desk.call("read_config", path="etc/app.conf") == {
        "main": {"name": "shop", "env": "prod", "flag": "on"},
        "paths": {"home": "/srv/shop", "log": "/srv/shop/log"},
        "db": {"host": "db.prod", "options": "a=1 b=2 c=3", "url": "db.prod:5", "port": "5"},
        "empty": {},
    }
    for path, message in {
        "loop.conf": "loop.conf includes loop2.conf includes loop.conf",
        "self.conf": "main:a refers to itself",
        "bad.conf": "bad.conf:3: 'what' is not understood",
    }.items():
        with pytest.raises(Failure, match=message):
            desk.call("read_config", path=path)


def test_plan_migration(desk: Desk) -> None:
    """Compare the tables in two SQL files, and list the statements that lead from the one to the other. They work in SQLite."""
    desk.write(
        {
            "old.sql": "CREATE TABLE users (\n  id INTEGER PRIMARY KEY, /* the\n key */\n  name TEXT NOT NULL,\n"
            "  age INT,\n  UNIQUE (name, age)\n);\n"
            "create table if not exists log(at TEXT);\n",
            "new.sql": "CREATE TABLE users (id integer  primary key, name TEXT NOT NULL, age REAL,\n"
            "  mark TEXT DEFAULT ') -- (, x', -- a mark, (with a comma\n  UNIQUE (name, age));\n"
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, by INT REFERENCES users (id), price NUMERIC(10, 2));",
        }
    )
    plan = desk.call("plan_migration", old="old.sql", new="new.sql")
    assert plan == {
        "statements": [
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, by INT REFERENCES users (id), price NUMERIC(10, 2));",
            "ALTER TABLE users ADD COLUMN mark TEXT DEFAULT ') -- (, x';",
            "DROP TABLE log;",
        ],
        "by_hand": ["users.age: INT becomes REAL"],
    }
    desk.command("sqlite3", "-bail", "a.db", desk.read("old.sql") + "\n".join(plan["statements"]))
    assert desk.command("sqlite3", "a.db", "SELECT name FROM sqlite_schema WHERE type = 'table'").split() == [
        "users",
        "posts",
    ]


def test_apply_patch(desk: Desk) -> None:
    """Apply a diff of git to the workspace, also where lines have moved: all of it, or nothing."""
    lines = [f"line {n}\n" for n in range(1, 41)]
    desk.write({"a.txt": "".join(lines), "d/b.txt": "one\ntwo\nthree"})
    desk.command("git", "init", "-q")
    desk.command("git", "add", ".")
    lines[4:6] = ["five\n", "six\n", "six and a half\n"]
    del lines[30]
    desk.write({"a.txt": "".join(lines), "d/b.txt": "one\n2\nthree\n", "new.txt": "fresh\n"})
    desk.command("git", "add", "-N", ".")
    patch = desk.command("git", "diff", "--no-color", "--", "a.txt", "d", "new.txt")
    wanted = {p: desk.read(p) for p in ("a.txt", "d/b.txt", "new.txt")}
    desk.command("git", "checkout", "-q", "--", "a.txt", "d")
    (desk.work / "new.txt").unlink()
    desk.write({"p.diff": patch})
    assert desk.call("apply_patch", patch="p.diff") == ["a.txt", "d/b.txt", "new.txt"]
    assert {p: desk.read(p) for p in wanted} == wanted

    desk.command("git", "checkout", "-q", "--", "a.txt", "d")
    desk.write({"a.txt": "above\nabove\n" + desk.read("a.txt"), "d/b.txt": "one\nTWO\nthree"})
    before = desk.read("a.txt")
    with pytest.raises(Failure, match=r"d/b\.txt: the hunk at line 1 does not fit"):
        desk.call("apply_patch", patch="p.diff")
    assert desk.read("a.txt") == before
    desk.write({"d/b.txt": "one\ntwo\nthree"})
    desk.call("apply_patch", patch="p.diff")
    assert desk.read("a.txt") == "above\nabove\n" + wanted["a.txt"]


def test_build_order(desk: Desk) -> None:
    """List what make would run for a goal, in order: variables of all kinds, continued lines, several targets, cycles."""
    makefile = (
        "CC ?= cc\nFLAGS := -O2\nOBJS = main.o \\\n\tutil.o\nFLAGS += -Wall\nLATER = $(WHO)\nWHO = you # someone\n"
        "app: $(OBJS) | out\n\t@echo $(CC) $(FLAGS) -o $@x $(OBJS) # $(LATER)\n"
        "main.o util.o: util.h\n\t@echo compile ${CC}\nout:\n\t@echo mkdir\nclean:\n\t@echo rm\n"
    )
    desk.write({"Makefile": makefile.replace("$@x", "app"), "c.mk": "a: b c\nb: d\nc:\nd: a\n"})
    order = desk.call("build_order", path="Makefile", goal="app")
    assert [(o["target"], o["commands"]) for o in order] == [
        ("main.o", ["@echo compile cc"]),
        ("util.o", ["@echo compile cc"]),
        ("out", ["@echo mkdir"]),
        ("app", ["@echo cc -O2 -Wall -o app main.o util.o # you"]),
    ]
    with pytest.raises(Failure, match="a cycle: a -> b -> d -> a"):
        desk.call("build_order", path="c.mk", goal="a")
    with pytest.raises(Failure, match="no rule for nothing"):
        desk.call("build_order", path="c.mk", goal="nothing")


def test_next_runs(desk: Desk) -> None:
    """List the next times of a cron expression in a time zone: lists, ranges, steps, names, either kind of day, summer time."""

    def runs(expression: str, after: str, zone: str = "UTC", count: int = 3) -> list[str]:
        found = desk.call("next_runs", expression=expression, after=after, zone=zone, count=count)
        assert all(datetime.datetime.fromisoformat(moment).tzinfo for moment in found)
        return [re.sub(r":00([+-])", r"\1", moment) for moment in found]

    assert runs("*/20 9-10 * * *", "2024-05-01T10:20", count=2) == ["2024-05-01T10:40+00:00", "2024-05-02T09:00+00:00"]
    assert runs("0 12 29 feb *", "2024-03-01T00:00", count=1) == ["2028-02-29T12:00+00:00"]
    assert runs("5 4 * * mon-fri", "2024-06-07T04:05") == [f"2024-06-{d}T04:05+00:00" for d in (10, 11, 12)]
    assert runs("0 0 1 * 7", "2024-06-01T00:00") == [f"2024-06-{d}T00:00+00:00" for d in ("02", "09", "16")]
    assert runs("0 0 1 * 0", "2024-06-27T00:00") == [f"2024-{d}T00:00+00:00" for d in ("06-30", "07-01", "07-07")]
    berlin = runs("30 2 * * *", "2024-03-30T00:00", "Europe/Berlin", 2)
    assert berlin == ["2024-03-30T02:30+01:00", "2024-04-01T02:30+02:00"]
    assert runs("10/25 3 * 1,3 *", "2024-12-31T23:59", count=2) == ["2025-01-01T03:10+00:00", "2025-01-01T03:35+00:00"]
    for wrong in ("* * * *", "60 * * * *", "* * * * bad", "5-1 * * * *x", "*/0 * * * *"):
        with pytest.raises(Failure):
            runs(wrong, "2024-01-01T00:00")
