"""The owner's rules name primitives of an application. A real package is used through the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.children import Report

from .conftest import Albert, Done, run_albert

TOOLS = '''
from albert_tools import CallContext, primitive

print("a module that talks")


@primitive(effects=["network"], approval=True, risk="high", rate_limit=5, schemas={"cents": {"minimum": 1}})
def send_invoice(customer: str, cents: int, note: str = "") -> dict[str, int]:
    """Send an invoice.

    Returns {"number"}.

    Args:
        customer: Who pays.
        cents: How much.
        note: What it is for.
    """
    return {"number": 7}


@primitive(sandbox=True)
def read_order(text: str) -> list[str]:
    """Read an order that a customer has written."""
    return text.split(",")


def no_primitive(x: int) -> int:
    return x


MANY = [send_invoice, read_order]
NUMBER = 7
'''


def run_albert_there(report: Report, words: list[str], cwd: Path, environ: dict[str, str], streams: list[Path]) -> None:
    """The same environment with one more folder of installed packages."""
    sys.path.append(environ.pop("SITE"))
    run_albert(report, words, cwd, environ, streams)


class There(Albert):
    """``albert`` in a Python that has further packages."""

    entry = staticmethod(run_albert_there)


class Shop:
    """An installed package, and an owner whose rules name parts of it."""

    def __init__(self, folder: Path) -> None:
        self.albert = There(folder)
        self.site = folder / "site"
        self.package = self.site / "shop"
        self.package.mkdir(parents=True)
        (self.package / "__init__.py").write_text("", "utf-8")
        (self.package / "tools.py").write_text(TOOLS, "utf-8")

    def rules(self, *entries: str, **more: Any) -> None:
        config = self.albert.home / "config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "governance.yaml").write_text(json.dumps({"primitives_from": entries, **more}), "utf-8")

    def __call__(self, *words: str, **env: str) -> Done:
        return self.albert(*words, env={"SITE": str(self.site), **env})

    def anew(self, *words: str) -> Done:
        """Run in a new Python process."""
        found = f"{self.albert.environ['PYTHONPATH']}:{self.site}"
        return self.albert(*words, env={"PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"})


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_primitives_of_the_application_are_listed_and_shown(shop: Shop) -> None:
    shop.rules("shop.tools")
    listed = {t["name"]: t for t in shop("tools", "--json").document()["tools"]}
    assert (listed["send_invoice"]["effects"], listed["send_invoice"]["policy"]["verdict"]) == (["network"], "ask")
    assert listed["send_invoice"]["policy"]["rule_id"] == "definition.approval"
    assert (listed["read_order"]["effects"], listed["read_order"]["policy"]["verdict"]) == ([], "allow")
    shown = shop("show", "send_invoice")
    assert "Send an invoice." in shown.out
    assert "5 calls an hour" in shown.out
    assert shown.err == "a module that talks\n"


def test_doctor_lists_functions_whose_threads_can_not_be_stopped(shop: Shop) -> None:
    shop.rules("shop.tools")
    facts = shop("doctor", "--quick", "--json").document()["facts"]
    # A confined function is killed.
    assert facts["threads"].startswith("send_invoice: a call that exceeds its time ends, and its thread runs on;")
    shop.rules("shop.tools:read_order")
    assert "threads" not in shop("doctor", "--quick", "--json").document()["facts"]


def test_primitives_of_the_application_are_authorized_and_run(shop: Shop) -> None:
    shop.rules("shop.tools:send_invoice", "shop.tools:read_order")
    waits = shop("run", "send_invoice", "customer=a", "cents:=5")
    assert waits.code == 4
    assert "send_invoice always needs approval" in waits.err
    (shop.albert.project / "t.tool").write_text(
        'def total(text: str) -> int:\n    """Count."""\n    return len(tools.read_order(text=text))\n', "utf-8"
    )
    assert shop("define", "t.tool").code == 0
    done = shop("run", "total", "text=a,b,c")
    assert (done.out, done.err) == ("3\n", "a module that talks\n")
    shop.rules("shop.tools", deny=["send_invoice"])
    assert shop("run", "send_invoice", "customer=a", "cents:=5").code == 3
    assert shop("run", "send_invoice", "customer=a", "cents:=0").code == 2


def test_doctor_names_folders_of_the_workspace_from_which_python_imports(shop: Shop) -> None:
    done = shop("doctor", "--quick", SITE=str(shop.albert.project / "src"))
    assert done.code == 1
    assert f"this Python imports from {shop.albert.project}/src, in the workspace, where tools can write" in done.out


def test_a_list_of_primitives_can_be_named(shop: Shop) -> None:
    shop.rules("shop.tools:MANY")
    names = [t["name"] for t in shop("tools", "--json").document()["tools"]]
    assert {"send_invoice", "read_order", "read_file"} <= set(names)
    done = shop("doctor", "--quick")
    assert "send_invoice, read_order, as primitives_from says" in done.out


def test_primitives_of_the_application_are_documented(shop: Shop) -> None:
    shop.rules("shop.tools")
    page = shop("tools", "--markdown").out
    assert "| [`send_invoice`](#send_invoice) | network | network | high | all | always | – | 30 s | 5 |" in page
    assert "\n### send_invoice\n" in page
    assert "`cents: int`, at least 1. How much." in page


WRONG = {
    "shop_": "there is no module 'shop_': install it in the Python that runs Albert Tools",
    "shop.tool": "there is no module 'shop.tool': shop has none",
    "shop": "it has no function under @primitive(effects=[…])",
    "shop.tools:send_invoise": "it has no 'send_invoise'; did you mean 'send_invoice'?",
    "shop.tools:no_primitive": "it is a function and no primitive; put @primitive(effects=[…]) over the function",
    "shop.tools:NUMBER": "it is of type int and no primitive",
    "shop.raises": "its import failed: ValueError: not today",
    "shop.leaves": "its import failed: SystemExit: 3",
    "shop.clash": "there is a primitive named 'read_file' already; give it a name of its own",
    "shop.wrong": "its import failed: TypeError: f: parameter 'x' needs an annotation",
}


def test_each_broken_entry_is_reported_and_the_others_load(shop: Shop) -> None:
    head = "from albert_tools import primitive\n"
    (shop.package / "raises.py").write_text("raise ValueError('not today')", "utf-8")
    (shop.package / "leaves.py").write_text("raise SystemExit(3)", "utf-8")
    (shop.package / "clash.py").write_text(head + "@primitive\ndef read_file(x: int) -> int:\n    return x\n", "utf-8")
    (shop.package / "wrong.py").write_text(head + "@primitive\ndef f(x):\n    return x\n", "utf-8")
    shop.rules(*WRONG, "shop.tools:read_order")
    listed, missing = shop("tools"), shop("run", "send_invoice")
    assert (listed.code, missing.code) == (0, 3)
    assert "no tool named 'send_invoice'" in missing.err
    for entry, said in WRONG.items():
        assert f"primitives_from: {entry}: {said}" in listed.err
        assert f"primitives_from: {entry}: {said}" in missing.err
    assert "read_order" in listed.out
    # The built-in read_file was not replaced.
    assert "encoding" in shop("show", "read_file").out


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("def __getattr__(name):\n    raise ValueError(name)\n", ":x"),
        ("def __getattr__(name):\n    raise SystemExit(3)\n", ":x"),
        ("class L(list):\n    def __iter__(self):\n        raise ValueError('no')\nx = L([1])\n", ":x"),
        ("class O:\n    __class__ = property(lambda self: 1 / 0)\nx = O()\n", ""),
        ("import sys\nsys.modules[__name__] = 5\n", ""),
    ],
)
def test_a_module_that_raises_when_it_is_inspected(shop: Shop, text: str, attribute: str) -> None:
    (shop.package / "odd.py").write_text(text, "utf-8")
    shop.rules(f"shop.odd{attribute}", "shop.tools")
    listed = shop("tools", "--json")
    assert listed.code == 0, listed.err
    assert "send_invoice" in {t["name"] for t in listed.document()["tools"]}
    assert f"primitives_from: shop.odd{attribute}: it can't be read" in shop("doctor", "--quick").out


def test_doctor_and_policy_check_fail_for_a_missing_module(shop: Shop) -> None:
    shop.rules("shop.gone")
    checked = shop("policy", "check")
    assert (checked.code, "primitives_from: shop.gone: there is no module" in checked.out) == (1, True)
    done = shop("doctor", "--quick", "--json")
    assert done.code == 1
    assert any("shop.gone" in problem for problem in done.document()["problems"])


def test_a_caller_of_a_missing_primitive_says_why_it_is_outdated(shop: Shop) -> None:
    shop.rules("shop.tools:read_order")
    (shop.albert.project / "t.tool").write_text(
        'def total(text: str) -> int:\n    """Count."""\n    return len(tools.read_order(text=text))\n', "utf-8"
    )
    assert shop("define", "t.tool").code == 0
    shop.rules("shop.gone")
    missing = "this application has no read_order; primitives_from: shop.gone: there is no module 'shop.gone'"
    assert f"total is outdated: {missing}" in shop("run", "total", "text=a").err
    assert "there is no module 'shop.gone'" in shop("show", "total").out
    # No module is named to a session whose lease doesn't cover all tools.
    token = shop("session", "new", "--tools", "total,describe_tool,no_tool").out.strip()
    for words in (["run", "total", "text=a"], ["run", "no_tool"], ["tools"], ["show", "total"]):
        done = shop(*words, ALBERT_SESSION=token)
        assert "gone" not in done.out + done.err, words
    shop.rules()
    done = shop("doctor", "--quick")
    # An outdated tool is not a problem of safety.
    assert "! outdated       total: `albert upgrade` checks it again\n" in done.out
    assert (done.code, done.out.splitlines()[-1]) == (0, "all is well")


def test_no_module_is_imported_from_the_workspace(shop: Shop) -> None:
    mark = shop.albert.project / "imported"
    source = f"open({str(mark)!r}, 'w').close()\n" + TOOLS
    (shop.albert.project / "local.py").write_text(source, "utf-8")
    (shop.albert.project / "pack").mkdir()
    (shop.albert.project / "pack" / "inner.py").write_text(source, "utf-8")
    (shop.site / "linked.py").symlink_to(shop.albert.project / "local.py")
    shop.rules("local", "pack.inner", "linked", "shop.tools:read_order")
    # `python -m` also searches the current folder for modules.
    done = shop.anew("tools")
    for name in ("local", "pack", "linked"):
        assert f"{name} is in the workspace, where tools can change it" in done.err
    assert not mark.exists()
    assert "read_order" in done.out


def test_a_projects_rules_can_not_name_code(shop: Shop) -> None:
    (shop.albert.project / ".albert" / "governance.yaml").write_text("primitives_from: [shop.tools]\n", "utf-8")
    done = shop("run", "current_time")
    assert done.code == 3
    assert "only the owner's file can have primitives_from" in done.err


def test_an_invalid_module_name_makes_the_rules_invalid(shop: Shop) -> None:
    for wrong in ("shop/tools.py", "shop.tools:", "shop.tools:a.b", "../x", ""):
        shop.rules(wrong)
        done = shop("run", "current_time")
        assert done.code == 3
        assert "primitives_from.0: write package.module:name" in done.err
