"""Attempts of programs to escape. For each attempt, each layer that must stop it is tested alone.

An attempt is the body of a tool. `checker`: the checker refuses the source. `gate`: the checker is switched off, and the
second gate refuses the same text. `worker`: both are switched off and the text runs in a real worker; the restricted names,
the confinement or a limit stops it. The test then checks that the service still works and that the attempt did not reach its
target.
"""

from __future__ import annotations

import asyncio
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.gate import Refused, judge
from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.grammar.python_parser import parse_python
from albert_tools.testing import registry

CATALOG = registry()
LIMITS = RunLimits(own_seconds=0.3, run_seconds=5.0, cpu_seconds=3, memory_bytes=128 * MiB, calls=20)

ALL = ("checker", "gate", "worker")
#: The tables can't tell these from honest programs. Only the limits of the process stop them.
LATE = ("worker",)
#: A program can do these if checker and gate are off, but they have no harmful effect.
EARLY = ("checker", "gate")

CLASSES = "c = ().__class__.__base__.__subclasses__()\n"
OS = CLASSES + "g = [k for k in c if k.__name__ == '_wrap_close'][0].__init__.__globals__\n"

ATTEMPTS: dict[str, tuple[tuple[str, ...], str]] = {
    # walking through double-underscore attributes
    "subclasses to a file": (
        ALL,
        CLASSES + "f = [k for k in c if k.__name__ == 'FileIO'][0]\nreturn str(f('/etc/passwd').read())",
    ),
    "subclasses to os.open": (ALL, OS + "return g['open']('/etc/passwd', 0)"),
    "subclasses to os.system": (ALL, OS + "return g['system']('id')"),
    "subclasses to fork": (ALL, OS + "return g['fork']()"),
    "subclasses to kill": (ALL, OS + "return g['kill'](g['getppid'](), 9)"),
    "subclasses to execv": (ALL, OS + "return g['execv']('/bin/true', ['true'])"),
    "subclasses to a socket": (ALL, OS + "return str(g['sys'].modules['socket'].socket())"),
    "subclasses to ctypes": (ALL, OS + "return g['sys'].modules['ctypes'].CDLL(None).getpid()"),
    "subclasses to memory made executable": (
        ALL,
        OS + "m = g['sys'].modules['ctypes']\nreturn m.CDLL(None).mmap(0, 4096, 7, 34, -1, 0)",
    ),
    "subclasses to ptrace": (ALL, OS + "return g['sys'].modules['ctypes'].CDLL(None).ptrace(16, g['getppid'](), 0, 0)"),
    "subclasses to chmod": (ALL, OS + "return g['chmod']('/tmp', 1023)"),
    "subclasses to unlink": (ALL, OS + "return g['unlink']('/tmp/nothing-is-here')"),
    "subclasses to prctl": (ALL, OS + "return g['sys'].modules['ctypes'].CDLL(None).prctl(38, 0, 0, 0, 0)"),
    "subclasses to setrlimit": (
        ALL,
        OS + "return g['sys'].modules['resource'].setrlimit(9, (-1, -1))",
    ),
    "mro of a class": (EARLY, "return str(str.mro())"),
    "a function's globals": (EARLY, "return str(_h.__globals__)"),
    "a function's code": (EARLY, "return str(_h.__code__.co_consts)"),
    "a method's function": (EARLY, "return str([].append.__self__)"),
    "a module's dictionary": (EARLY, "return str(json.__dict__)"),
    "a module's loader": (ALL, "return json.__loader__.load_module('os')"),
    "built-ins by name": (ALL, "return __builtins__['open']('/etc/passwd').read()"),
    "a class by three arguments of type": (ALL, "return type('X', (), {})"),
    "getattr with a name made of parts": (ALL, "return getattr((), '__cl' + 'ass__')"),
    "names in compatibility letters": (("checker",), "return ().__cl\u1d43ss__"),
    # import and evaluation
    "import os": (ALL, "import os\nreturn os.listdir('/')"),
    "import of a part": (ALL, "from json import codecs\nreturn codecs.open('/etc/passwd')"),
    "the importer": (EARLY, "return __import__('os').listdir('/')"),
    "a star": (EARLY, "from os import *\nreturn listdir('/')"),
    "eval": (ALL, "return eval('1')"),
    "exec": (ALL, "exec('x = 1')"),
    "compile": (ALL, "return str(compile('1', 'x', 'eval'))"),
    "open": (ALL, "return open('/etc/passwd').read()"),
    "input": (ALL, "return input()"),
    "globals": (ALL, "return str(globals())"),
    "breakpoint": (ALL, "breakpoint()"),
    # text that formats itself
    "str.format": (EARLY, "return '{0.__class__}'.format(x)"),
    "format_map": (EARLY, "return '{a.__class__}'.format_map({'a': x})"),
    "format as a callback": (EARLY, "return list(map('{0.__class__}'.format, [x]))"),
    "a Formatter": (ALL, "return string.Formatter().format('{0.__class__}', x)"),
    # frames
    "a generator's frame": (EARLY, "g = (i for i in [1])\nreturn str(g.gi_frame.f_back.f_globals)"),
    "a traceback's frame": (
        EARLY,
        "try:\n    1 // 0\nexcept ZeroDivisionError as e:\n    return str(e.__traceback__.tb_frame.f_back)",
    ),
    "a kept exception's frame": (
        EARLY,
        "last = None\ntry:\n    1 // 0\nexcept ZeroDivisionError as e:\n    last = e\nraise last.__traceback__.tb_frame",
    ),
    "with_traceback": (EARLY, "raise ValueError('x').with_traceback(None)"),
    "an exception's object": (EARLY, "try:\n    x.nothing\nexcept AttributeError as e:\n    return str(e.obj)"),
    "an exception's context": (
        EARLY,
        "try:\n    1 // 0\nexcept ZeroDivisionError as e:\n    return str(e.__context__)",
    ),
    "except*": (("checker", "gate"), "try:\n    1 // 0\nexcept* ZeroDivisionError as e:\n    return str(e)"),
    # other constructs
    "a class": (("checker", "gate"), "class A:\n    pass\nreturn 1"),
    "a metaclass in a lambda": (("checker", "gate"), "return (lambda: (yield))"),
    "global": (("checker", "gate"), "global x1\nx1 = 1"),
    "a decorator that calls": (("checker", "gate"), "@print\ndef f():\n    pass\nreturn 1"),
    "an async generator's frame": (("checker", "gate"), "async def f():\n    yield 1\nreturn 1"),
    "with": (("checker", "gate"), "with x as y:\n    return 1"),
    "a loop without end": (("checker", "worker"), "while True:\n    pass"),
    "a bare except around a limit": (("gate",), "try:\n    x = 'a' * 10**11\nexcept:\n    return 1"),
    # poisoning, shadowing
    "assigning to a façade": (("checker", "gate"), "json.dumps = x\nreturn 1"),
    "deleting from a façade": (("checker", "gate"), "del json.dumps\nreturn 1"),
    "rebinding what the sandbox adds": (("checker", "gate"), "ToolError = 3\nreturn 1"),
    "a parameter named like a guard": (("checker", "gate"), "return (lambda __call: 1)(2)"),
    "binding a hidden name": (("checker", "gate"), "__fatal = 3\nreturn 1"),
    "a loop over a hidden name": (("checker", "gate"), "for __most in [10**9]:\n    pass\nreturn 1"),
    "calling the boundary oneself": (("checker", "gate"), "return __call(x, {})"),
    "raising the depth": (("checker", "gate"), "return _h(1, __depth=-10**9)"),
    "an except clause with a made-up type": (
        ("checker", "gate"),
        "try:\n    1 // 0\nexcept x.__class__:\n    return 1",
    ),
    "the tools object as a value": (("checker", "gate"), "t1 = tools\nreturn t1.bash(command='id')"),
    "a tool by a computed name": (("checker", "gate"), "return tools['bash'](command='id')"),
    # façades with dangerous functions
    "the clock of a date": (EARLY, "return str(datetime.datetime(2020, 1, 1).now())"),
    "today": (EARLY, "return str(datetime.date.today())"),
    "an operator as a key": (ALL, "import operator\nreturn sorted([x], key=operator.attrgetter('__class__'))"),
    "a hook of json": (("checker",), "return json.loads('1', cls=x)"),
    "unpickling": (ALL, "import pickle\nreturn pickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.')"),
    "a file through csv": (EARLY, "return csv.writer(x).__self__"),
    # size and time
    "a power": (LATE, "n = 9\nfor i in range(9):\n    n = n ** 9\nreturn str(n)"),
    "a width": (LATE, "n = 10**9\nreturn len(f'{1:{n}}' * 9)"),
    "a repetition": (LATE, "n = 10**11\nreturn len('a' * n)"),
    "a range in a list": (LATE, "return len(list(range(2**62)))"),
    "a product": (LATE, "return len(list(itertools.product(range(1000), repeat=5)))"),
    "a runaway pattern": (LATE, "return str(re.match('(a+)+$', 'a' * 60 + 'b'))"),
    "digits of a large int": (LATE, "n = 3 ** (10**7)\nreturn len(str(n))"),
    "a shared graph": (LATE, "a = [1]\nfor i in range(60):\n    a = [a, a]\nreturn a"),
    "a list in itself": (LATE, "a = [1]\na.append(a)\nreturn a"),
    "deep text": (LATE, "return json.loads('[' * 100_000)"),
    "deep equality": (LATE, "a, b = [1], [1]\nfor i in range(100_000):\n    a, b = [a], [b]\nreturn a == b"),
    "too many calls": (LATE, "for i in range(1000):\n    tools.current_time()\nreturn 1"),
    "printing without end": (LATE, "for i in range(10**9):\n    print('x' * 1000)"),
    "a growing string": (LATE, "s = 'ab'\nfor i in range(99):\n    s = s + s\nreturn len(s)"),
    "a sum of lists": (LATE, "return len(sum([[0] * 10**6 for i in range(10**6)], []))"),
    "sorting for long": (LATE, "return sorted(range(10**9), key=lambda i: -i)[0]"),
}

IMPORTS = "import csv\nimport datetime\nimport itertools\nimport json\nimport re\nimport string\n"
HELPER = "def _h(n):\n    return n\n"


def source(body: str) -> str:
    head = "\n".join(line for line in IMPORTS.splitlines() if f"{line.split()[1]}." in body)
    helper = 'def _h(n: int) -> int:\n    """H."""\n    return n\n\n\n' if "_h" in body else ""
    return f'{head}\n\n\n{helper}def t(x: Any) -> Any:\n    """T."""\n{textwrap.indent(body, "    ")}\n'


def lowered(body: str) -> str:
    body = body.replace("tools.current_time()", "__call('current_time', {})")
    return f"{IMPORTS}{HELPER}def t(x):\n{textwrap.indent(body, '    ')}\n"


def attempts(layer: str) -> list[Any]:
    return [pytest.param(body, id=name) for name, (layers, body) in ATTEMPTS.items() if layer in layers]


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 70


@pytest.mark.parametrize("body", attempts("checker"))
def test_checker_refuses(body: str) -> None:
    assert check(source(body), CATALOG).checked is None


@pytest.mark.parametrize("body", attempts("gate"))
def test_gate_refuses_with_the_checker_off(body: str) -> None:
    try:
        text = lowered(body)
        judge(parse_python(text))
    except (Refused, SyntaxError):
        return
    pytest.fail(f"the gate let this through:\n{text}")


Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    sandbox = Sandbox(LIMITS)

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        return "called"

    async def attempt(text: str) -> Any:
        return await sandbox.run(Program("t", "t", text), {"x": {}}, call=call)

    asyncio.run_coroutine_threadsafe(sandbox.start(), loop).result(60)
    yield lambda text: asyncio.run_coroutine_threadsafe(attempt(text), loop).result(60)
    asyncio.run_coroutine_threadsafe(sandbox.close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("body", attempts("worker"))
def test_worker_stops_the_attempt_with_both_off(run: Run, body: str) -> None:
    secret = Path("/etc/passwd").read_text()[:20]
    try:
        got = run(lowered(body))
    except Failure as failure:
        caught = failure
    else:
        pytest.fail(f"it gave {str(got)[:200]!r}")
    assert secret not in str(caught.as_dict())
    assert caught.code in {
        "exception",
        "sandbox_violation",
        "time_limit",
        "cpu_limit",
        "memory_limit",
        "recursion_limit",
        "result_limit",
        "log_limit",
        "call_limit",
        "worker_died",
        "not_json",
    }
    # The service goes on, and the next program finds no data of this program.
    assert run("def t(x):\n    return [1 + 1, x]\n") == [2, {}]


def test_one_run_leaves_no_data_for_the_next(run: Run) -> None:
    leave = OS + "g['sys'].modules['json'].left = 'here'\nc.append(1)\nreturn 1"
    find = OS + "return getattr_(g['sys'].modules['json'])"
    assert run(lowered(leave)) == 1
    find = find.replace("getattr_(g['sys'].modules['json'])", "'left' in g['sys'].modules['json'].__dict__")
    assert run(lowered(find)) is False


def test_the_worker_has_no_environment_arguments_or_files(run: Run) -> None:
    look = OS + "return [dict(g['environ']), g['sys'].argv[1:2], g['sys'].path]"
    environment, _, path = run(lowered(look))
    assert set(environment) <= {"PYTHONHASHSEED", "TZ", "LC_ALL", "PYTHONTZPATH"}
    assert path == []
