"""Versions of a tool: the report of `define`, the list and the names of versions, and what remains of a removed tool."""

from __future__ import annotations

import getpass
import re
from typing import Any

from .conftest import Albert
from .test_tool_commands import BASE, TOP


def version(n: int) -> str:
    return BASE.replace("text.upper()", f"text.upper() * {n}")


def define(albert: Albert, source: str, name: str = "base.tool") -> Any:
    albert.write(name, source)
    done = albert("define", name, "--json")
    assert done.code == 0, done.out
    return done.document()


def test_define_reports_saved_unchanged_or_replaced(albert: Albert) -> None:
    first = define(albert, version(1))
    assert (first["outcome"], first["replaced"]) == ("saved", None)
    assert define(albert, version(1))["outcome"] == "unchanged"
    second = define(albert, version(2))
    assert (second["outcome"], second["replaced"]) == ("replaced", first["version"])
    albert.write("base.tool", version(3))
    done = albert("define", "base.tool")
    assert re.match(rf"replaced base\(.*\) -> str  [0-9a-f]{{12}} in place of {second['version'][:12]}\n", done.out)
    assert albert("define", "base.tool").out.startswith("unchanged base(")
    assert albert("remove", "base").code == 0
    assert define(albert, version(3))["outcome"] == "saved"


def test_callers_of_an_older_version_are_named_until_they_are_defined_again(albert: Albert) -> None:
    define(albert, version(1))
    define(albert, TOP, "top.tool")
    albert.write("base.tool", version(2))
    done = albert("define", "base.tool")
    assert done.code == 0
    assert (
        "warning: top still calls an older base; define it again, or use `albert upgrade`, to call this one" in done.err
    )
    assert albert("define", "base.tool", "--json").document()["callers"] == ["top"]
    assert re.search(r"top +allow +Call another\.  calls an older base", albert("tools").out)
    shown = albert("show", "top").out
    assert re.search(r"calls    base  composite [0-9a-f]{12}  an older version; now [0-9a-f]{12}\n", shown)
    assert "define top again" in shown
    listed = {t["name"]: t for t in albert("tools", "--json").document()["tools"]}
    assert listed["top"]["changed"] == ["base"]
    (call,) = albert("show", "top", "--json").document()["calls"]
    assert call["newest"] == listed["base"]["version"] != call["version"]
    assert albert("run", "top", "text=a").out == "A!\n"

    albert.write("base.tool", version(3))
    both = albert("define", "top.tool", "base.tool")
    assert (both.code, both.err) == (0, "")
    assert "calls an older" not in albert("tools").out + albert("show", "top").out
    assert albert("run", "top", "text=a").out == "AAA!\n"


def test_the_history_is_shown_newest_first(albert: Albert) -> None:
    saved = [define(albert, version(n))["version"] for n in range(1, 14)]
    shown = albert("show", "base").out
    listed = re.findall(r"^  ([0-9a-f]{12})  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC(  current)?$", shown, re.MULTILINE)
    assert [h for h, _ in listed] == [v[:12] for v in reversed(saved[3:])]
    assert [bool(current) for _, current in listed] == [True] + [False] * 9
    assert "  … and 3 more\n" in shown
    document = albert("show", "base", "--version", saved[0][:8], "--json").document()
    assert document["version"] == saved[0]
    assert document["versions_total"] == 13
    assert [v["version"] for v in document["versions"]] == saved[:2:-1]
    assert [v["current"] for v in document["versions"]] == [True] + [False] * 9
    assert "versions" not in albert("show", "read_file").out
    assert f"version  {saved[0]}  not the newest\n" in albert("show", "base", "--version", saved[0][:6]).out


def test_the_first_digits_name_a_version(albert: Albert) -> None:
    first = define(albert, version(1))["version"]
    second = define(albert, version(2))["version"]
    for digits in (first[:6], first[:12], first):
        assert albert("run", "base", "text=a", "--version", digits).out == "A\n"
    assert albert("run", "base", "text=a", "--version", second[:12]).out == "AA\n"
    for digits in (first[:5], "0123456789", "zz", "../../x"):
        for words in (("run", "base", "text=a"), ("show", "base")):
            done = albert(*words, "--version", digits)
            assert done.code == 3
            assert f"the tool 'base' has no version {digits!r}" in done.err
            # The hinted command works.
            command = re.search(r"help: `albert (.*?)`", done.err)
            assert command
            assert "versions, newest first" in albert(*command[1].split()).out


def test_digits_that_several_versions_begin_with(albert: Albert) -> None:
    versions = [define(albert, version(n))["version"] for n in (1, 2, 3)]
    # Hashes with six equal digits can't be produced on purpose, so the test edits the file on disk.
    entry = next((albert.home / "tools").rglob("base.json"))
    text = entry.read_text()
    alike = [versions[2][:6] + "0" * 58, versions[2][:6] + "1" * 58]
    for old, new in zip(versions, alike, strict=False):
        text = text.replace(old, new)
    entry.write_text(text)
    done = albert("show", "base", "--version", versions[2][:6])
    assert done.code == 3
    assert f"3 versions of 'base' begin with {versions[2][:6]!r}: " in done.err
    assert "give more digits" in done.err
    assert alike[0][:7] in done.err
    assert albert("show", "base", "--version", versions[2][:12]).code == 0


def test_every_command_says_the_same_about_a_removed_tool(albert: Albert) -> None:
    saved = define(albert, version(1))["version"]
    removed = albert("remove", "base")
    assert f"albert show base --version {saved[:12]}" in removed.out
    said = {albert(*words).err for words in (("show", "base"), ("run", "base", "text=a"), ("remove", "base"))}
    assert len(said) == 1
    (text,) = said
    assert "the tool 'base' was removed" in text
    assert f"`albert show base --version {saved[:12]}`" in text
    shown = albert("show", "base", "--version", saved[:12])
    assert f"version  {saved}  removed\n" in shown.out
    # The command that calls it works.
    (call,) = re.findall(r"call it  albert (.*)", shown.out)
    assert albert(*call.split()).code == 0
    assert "versions, newest first" in shown.out
    assert albert("run", "base", "--version", saved[:12], "text=a").out == "A\n"
    error = albert("show", "base", "--json").document()["error"]
    assert (error["code"], error["details"]["last"]) == ("unknown_tool", saved)
    assert saved[:12] in error["hint"]


def test_a_tool_that_calls_an_outdated_one_is_refused(albert: Albert) -> None:
    define(albert, version(1))
    define(albert, TOP, "top.tool")
    albert.write("above.tool", TOP.replace("def top", "def above").replace("tools.base", "tools.top"))
    entry = next((albert.home / "tools").rglob("base.json"))
    entry.write_text("{}")
    for command in ("define", "check"):
        done = albert(command, "above.tool")
        assert done.code == 1
        assert "error[outdated-callee]: 'top' is outdated: base can't be loaded" in done.err
        assert "help: define top again first, from its source" in done.err
    assert "\n  above " not in albert("tools").out
    # Following the hint is enough.
    assert albert("define", "base.tool").code == 0
    assert albert("define", "above.tool", "top.tool").code == 0
    assert albert("run", "above", "text=a").out == "A!!\n"


def test_check_knows_the_other_files_of_the_command(albert: Albert) -> None:
    albert.write("top.tool", TOP)
    albert.write("base.tool", f'@example(arguments={{"text": "a"}}, result="A")\n{BASE}')
    done = albert("check", "top.tool", "base.tool")
    assert (done.code, done.err) == (0, "")
    assert done.out == "good base.tool; define runs its example\ngood top.tool\n"
    document = albert("check", "top.tool", "base.tool", "--json").document()
    # More arguments can follow an option.
    assert albert("check", "top.tool", "--json", "base.tool").document() == document
    assert [(f["file"], f["examples"]) for f in document["files"]] == [("base.tool", 1), ("top.tool", 0)]
    assert albert("check", "top.tool").code == 1
    assert not [t for t in albert("tools", "--json").document()["tools"] if t["kind"] == "composite"]
    albert.write("base.tool", BASE.replace("text: str", "words: str"))
    assert "error[" in albert("check", "top.tool", "base.tool").err
    albert.write("base.tool", BASE.replace("text.upper()", "tools.top(text=text)"))
    assert albert("check", "top.tool", "base.tool").code == 2


def test_doctor_reads_every_version(albert: Albert) -> None:
    names = ("kept", "archived", "removed")
    for n in range(1, 13):
        sources = [albert.write(f"{name}.tool", version(n).replace("def base", f"def {name}")) for name in names]
        # One tool gets enough versions for an archive.
        assert albert("define", *(sources if n < 3 else sources[1:2])).code == 0
    assert albert("remove", "removed").code == 0
    tools = albert.home / "tools"
    spoilt = [next(tools.rglob(f"{n}.json")) for n in ("kept", "removed")]
    spoilt.append(next(tools.rglob("archived.archive/*.json")))
    for path in spoilt:
        before = path.read_text()
        path.write_text(re.sub(r"upper\(\) \* 1\b|upper\(\) \* 2\b", "lower()", before))
        assert path.read_text() != before
    spoilt.append(spoilt[0].with_name("other.json"))
    spoilt[-1].write_text("{}")
    done = albert("doctor", "--quick")
    assert done.code == 1
    assert done.out.endswith("something is wrong, see ✗\n")
    for path in spoilt:
        assert re.search(rf"✗ damaged +{re.escape(str(path))}: .*; define the tool again, or move", done.out)
    document = albert("doctor", "--quick", "--json").document()
    assert document["ok"] is False
    assert len([p for p in document["problems"] if p.startswith("damaged: ")]) == len(spoilt)


def test_a_callee_that_was_removed_is_not_an_older_one(albert: Albert) -> None:
    define(albert, version(1))
    define(albert, TOP, "top.tool")
    removed = albert("remove", "base")
    assert removed.out.startswith("removed base; its versions are kept; top still calls it\n")
    assert "an older" not in albert("tools").out
    assert "since removed" in albert("show", "top").out
    assert albert("run", "top", "text=a").out == "A!\n"


def test_a_person_approves_a_tool_in_one_version(albert: Albert) -> None:
    albert.write("base.tool", BASE)
    version = albert("define", "base.tool", "--json").document()["version"]
    done = albert("review", "base", "--approve")
    assert re.fullmatch(rf"active base  {version[:12]}\n", done.out)
    assert f"Be called.  active, approved by {getpass.getuser()}\n" in albert("tools").out
    albert.write("base.tool", BASE.replace("upper", "lower"))
    assert albert("define", "base.tool").code == 0
    assert "active in an older version" in albert("tools").out
    assert albert("review", f"base@{version[:8]}", "--approve", "--json").document()["version"] == version
    assert albert("review", "base", "--deprecate").out == f"deprecated base  {version[:12]}\n"
    assert albert("review", "base", "--deprecate").code == 1
    assert "Be called.  not reviewed\n" in albert("tools").out
    assert albert("review", "base", "--revoke", "it shouts").out.endswith(": it shouts\n")
    assert "base was revoked" in albert("run", "base", "text=a").err
    assert "base is active, by" in albert("ledger", "tail").out
