import posixpath
import re


@example(
    arguments={"old": "pkg.util", "new": "pkg.text.helpers"},
    files={
        "pkg/util.py": "def f(): ...\n",
        "pkg/a.py": "from pkg.util import f\nimport pkg.util as u, os\nfrom pkg import util\n# pkg.utilities stays\n",
    },
    stubs={"move_file": {"path": "pkg/text/helpers.py", "size_bytes": 1, "sha256": "0"}, "run_program": {"exit_code": 0, "stdout": "", "stderr": ""}},
    result={"changed": ["pkg/a.py"], "replaced": 3},
    expect_files={
        "pkg/a.py": "from pkg.text.helpers import f\nimport pkg.text.helpers as u, os\nfrom pkg.text import helpers as util\n# pkg.utilities stays\n"
    },
)
def rename_module(old: str, new: str) -> dict:
    """Rename a Python module: move its file, correct the imports, check that all files compile; else put everything back.

    Args:
        old: The module's dotted name, for example pkg.util.
        new: Its new dotted name.
    """
    source, target = old.replace(".", "/") + ".py", new.replace(".", "/") + ".py"
    old_parent, _, old_name = old.rpartition(".")
    new_parent, _, new_name = new.rpartition(".")
    originals, replaced = {}, 0
    for path in tools.find_files(pattern="**/*.py")["paths"]:
        text = tools.read_file(path=path)
        changed, count = re.subn(rf"(?<![\w.]){re.escape(old)}(?![\w])", new, text)
        if old_parent:
            tail = new_name if new_name == old_name else f"{new_name} as {old_name}"
            changed, more = re.subn(
                rf"^(\s*)from {re.escape(old_parent)} import {old_name}$", rf"\1from {new_parent} import {tail}", changed, flags=re.M
            )
            count += more
        if count:
            originals[path] = text
            replaced += count
            tools.write_file(path=path, content=changed)
    moved = False
    try:
        if posixpath.dirname(target):
            tools.make_directory(path=posixpath.dirname(target))
        tools.move_file(source=source, target=target)
        moved = True
        check = tools.run_program(argv=["python3", "-m", "compileall", "-q", "."])
        if check["exit_code"] != 0:
            raise ToolError("the files don't compile: " + check["stdout"])
    except ToolError:
        if moved:
            tools.move_file(source=target, target=source)
        for path, text in originals.items():
            tools.write_file(path=path, content=text)
        raise
    return {"changed": sorted(originals), "replaced": replaced}
