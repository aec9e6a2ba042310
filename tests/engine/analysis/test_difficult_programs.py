"""Programs whose manifests are easily wrong: each is run with several texts, and compared with its manifest."""

from __future__ import annotations

import re

import pytest

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from tests.helpers import containment
from tests.helpers.answers import Answers
from tests.helpers.generated_tools import generated_tools
from tests.helpers.recorded_run import recorded

CATALOG = generated_tools(0)
MODULES = """
bisect collections copy csv datetime decimal fractions functools heapq io itertools json math operator posixpath re
""".split()
TEXTS = ["k", "a", "b k=v", "", "kk\nb\n", "[1]", "/k//../b/"]
#: `SEND` is one call. `x` is the body of the last one.
CALL = 'tools.http_request(method="POST", url="https://a.example", body={})'
#: A path in normal form, to which something is added, again in normal form.
EDIT = """
p = tools.edit_file(path={}, old_text='a', new_text='b')['path']
x = tools.edit_file(path=p + {}, old_text='a', new_text='b')['path']
"""
PROGRAMS = {
    "the distance of two numbers": "for i in range(abs(len(s) - 100)):\n    SEND",
    "a list that is repeated in place": "xs = ['a', 'b']\nxs *= 3\nfor i in xs:\n    SEND",
    "the rest of a matched list": "match s.split('k'):\n    case [first, *rest]:\n        for i in rest:\n            SEND",
    "many groups": "for i in re.search('()' * 200, s).groups():\n    SEND",
    "many groups of each match": "for i in re.findall('()' * 200, s):\n    for j in i:\n        SEND",
    "pieces between groups": "for i in re.split('((((b))))', s):\n    SEND",
    "a text that is repeated by a product": "x = str(math.prod(['text'], start=1))",
    "a fraction": "x = str(abs(fractions.Fraction(1, 3)))",
    "a power of a fraction": "x = str(pow(fractions.Fraction(1, 3), 2))",
    "a rounded decimal number": "x = str(round(decimal.Decimal('1E+5'), -3))",
    "a span of time": "x = str(abs(datetime.timedelta(1)))",
    "a negative zero": "y = 0.0 if 'k' in s else -0.0\nx = f'{y}'",
    "any, which stops": "any([SEND, q in s][1] for q in 'kab')",
    "any over map": "any(map(lambda q: [SEND, q in s][1], 'kab'))",
    "in, which stops": "'a' in map(lambda q: [SEND, s][1], 'kab')",
    "next of a filter": "next(filter(lambda q: [SEND, q in s][1], 'kab'), None)",
    "a loop over map that ends early": "for q in map(lambda q: [SEND, q][1], 'kab'):\n    if q in s:\n        break",
    "a chain of comparisons": "y = 'a' < s < str(SEND)",
    "map over unpacked lists": "x = list(map(lambda p, q: q, *[['a'], [s]]))[0]",
    "map over a list and unpacked lists": "x = list(map(lambda p, q: q, ['a'], *[[s]]))[0]",
    "a function that changes its argument, as a callback": "h = ['q']\nlist(map(heapq.heappush, [h], [s]))\nx = ''.join(h)",
    "an object in a text": "d = json.loads('{}')\nd['k'] = s\nx = '%s' % d",
    "an update of an unknown object": "d = json.loads('{}')\nd.update({'k': s})\nx = d['k']",
    "characters that are counted": "c = collections.Counter()\nc.update(s)\nx = ''.join(c)",
    "numbers that are counted": "c = collections.Counter()\nc.update([1, 2])\nx = ','.join([str(q) for q in c])",
    "a counter of texts": "x = collections.Counter({'a': 'text'})['a']",
    "what a counter subtracts": "c = collections.Counter()\nc.subtract([s, 'b'])\nx = ','.join(c)\nfor q in c:\n    SEND",
    "a list in a sum of lists": "a = []\nb = sum([[a]], [])\nb[0].append(s)\nx = a[0]",
    "an error under a test of a list": """
xs = [1 for c in 'k' if c in s]
try:
    if xs:
        raise ValueError('q')
    x = 'b'
except ValueError:
    x = 'c'
""",
    "an item that is not there": "xs = [s]\ntry:\n    xs.remove('k')\n    x = 'b'\nexcept ValueError:\n    x = 'c'",
    "a key that is not there": "d = {}\nd[s] = 1\ntry:\n    del d['k']\n    x = 'b'\nexcept KeyError:\n    x = 'c'",
    "too few parts": "xs = [s]\ntry:\n    for p, q in xs:\n        pass\n    x = 'b'\nexcept ValueError:\n    x = 'c'",
    "an absolute path in a join": "x = posixpath.join('out', f'{s}')",
    "the digits of a number": "for c in str(len(s) + 1000):\n    SEND",
    "a number in capitals": "x = str(1e-05 if s else 0.1).upper()",
    "a point of a number": "p = str(1.5)[1:2]\nx = tools.edit_file(path=p + p + s, old_text='a', new_text='b')['path']",
    "a path that may be empty": EDIT.format("posixpath.dirname('docs')", "'.txt'"),
    "a path with an end that may be empty": EDIT.format("'https://' + s + '/' + 'a'.partition('b')[2]", "''"),
    "a path that leads up behind an unknown part": EDIT.format("'docs/' + s.partition('b')[2] + '/../x'", "s"),
    "a path below a path": EDIT.format("s", "'/' + s"),
    "a conditional walrus": "x = s\nif len(x) > 9000 and (x := 'b'):\n    pass",
    "an assignment before a handler returns": f"""
try:
    if 'k' in s:
        raise ValueError('q')
except ValueError:
    x = s
    return
finally:
    {CALL.format("x")}
""",
    "a list that is chosen": "a = []\nb = []\nc = a if 'k' in s else b\nc.append('q')\nx = ''.join(a)",
    "a callback for each character": "y = list(map(lambda q: SEND, s))",
    "a callback of a substitution": "y = re.sub('k', lambda m: str(SEND), s)",
    "a key that may be there": "d = {}\nif 'k' in s:\n    d['a'] = 1\nd['b'] = 1\nx, *q = d",
    "a lazy value in a name": "y = map(lambda q: [SEND, q in s][1], 'kab')\nany(y)",
    "a loop over a lazy value in a name": "y = (SEND for q in 'kab')\nfor q in y:\n    if s:\n        break",
    "lines of a buffer": "y = io.StringIO('a\\nb\\nc')\nfor q in y:\n    if s:\n        break\nx = y.read()",
    "lines of a buffer in a list": "y = [io.StringIO('a\\nb')]\nfor q in y[0]:\n    if s:\n        break\nx = y[0].read()",
    "lines of a buffer in a dictionary": "y = {'b': io.StringIO('a\\nb')}\n'a' in zip(y.get('b'), s)\nx = y['b'].read()",
    "a place in a buffer": "y = io.StringIO('a\\nb\\nc')\nfor q in s:\n    y.readline()\nx = y.read()",
    "a key function of bisect": "y = bisect.bisect_left(['a', 'b'], s, key=lambda q: str(SEND))",
    "an integer with many digits": "for i in range(int('00000000000000000000000000007')):\n    SEND",
    "the largest of several": "y = max(len(s), 3, 2, key=lambda q: [SEND, q][1])",
    "the largest of unpacked numbers": "y = max(*[3, 4], key=lambda q: [SEND, q][1])\nx = str(y)",
    "unpacked lists side by side": "y = [['a', s], ['b', 'c']]\nfor p in zip(*y):\n    for q in p:\n        SEND",
    "an unpacked dictionary": "y = dict(**{'a': s, 'b': '2'})\nfor q in y:\n    SEND\nx = ','.join(y)",
    "names that are added": "y = {}\ny.update(a=1, b=2, c=3)\nfor q in y:\n    SEND",
    "a union of unpacked lists": "for q in set().union(*[['a', s], ['b', 'c']]):\n    SEND",
    "an unpacked default": "d = {'k': 'a'}\nx = d.pop(*['zz', s])",
    "an empty separator": "for q in re.split('', s):\n    SEND",
    "keys that are equal": "y = {1.0: 'a'}\nif 'k' in s:\n    y = {}\ny[1] = 'a'\nx = ','.join([str(q) for q in y])",
    "a range that is too long to be counted": f"for i in range(-1, {10**30}):\n    SEND\n    break",
    "a range with a step of 0": "try:\n    for i in range(0, 5, 0):\n        SEND\nexcept ValueError:\n    x = 'b'",
    "a copy of one of two lists": "y = ['a', 'b'] if 'k' in s else ['a', 'b', 'c']\nx = ''.join(y.copy())",
    "a format of a date": "x = f'{datetime.date.max:d}'",
    "a fraction and a number": "x = str(1 + abs(fractions.Fraction(1, 3)))",
    "a sum of fractions": "x = str(sum([abs(fractions.Fraction(1, 3))]))",
    "a total of fractions": "x = str(collections.Counter({'a': fractions.Fraction(1, 3)}).total())",
    "flags of an expression": "x = str(re.I | re.M)",
    "a difference of counters": "y = collections.Counter() - collections.Counter({'a': -1, 'b': -1})\nfor q in y:\n    SEND",
    "keys and a text": "x = ''.join(sorted({'z': 1}.keys() | 'bc'))",
    "a text and keys": "x = ''.join(sorted('abc' - {'a': 1}.keys()))",
    "lines that were written": "y = io.StringIO()\ny.write(s)\ny.seek(0)\nfor q in y:\n    SEND",
    "calls without arguments": """
for q in s:
    try:
        re.split()
        functools.reduce()
        [].insert()
    except TypeError:
        x = q
""",
    "pairs that are none": "xs = [s]\ntry:\n    dict(xs)\n    x = 'b'\nexcept ValueError:\n    x = 'c'",
    "a walrus in a list": "y = ''\nz = [y := y + 'ab' for q in 'xyz']\nx = y",
    "a walrus after a read": "y = 'a'\nx = [(y, (y := s))[0] for q in 'ab'][1]",
    "a walrus that decides about the next call": "f = False\nz = [(SEND if f else 0, (f := q in s)) for q in 'kab']",
    "a walrus in a key": "k = 'a'\ny = {(k := s): k}\nx = list(y.values())[0]",
    "a walrus in an object whose method is called": "ys = []\ny = 'a'\n[ys, (y := s)][0].append(y)\nx = ''.join(ys)",
    "a walrus after a lazy value": "y = 'a'\nx = list(zip(map(lambda q: y, 'ab'), [(y := s)]))[0][0]",
    "a loop that binds what its lazy value reads": "y = 'a'\nfor q in (y for z in 'abc'):\n    y = s\n    x = q",
    "takewhile, which stops": "list(itertools.takewhile(lambda q: [SEND, q in s][1], 'kab'))",
    "a search whose key is a call": "bisect.bisect_left(['a', 'b'], s, key=lambda q: [SEND, q][1])",
    "the largest of so many": "heapq.nlargest(len(s), [1, 2], key=lambda q: [SEND, q][1])",
    "groups in a loop that ends early": """
for k, g in itertools.groupby('kab', key=lambda q: [SEND, q][1]):
    if k in s:
        break
""",
    "a key that operator adds": "y = collections.defaultdict(str)\noperator.getitem(y, s)\nx = ','.join(y)",
    "a key that a format adds": "y = collections.defaultdict(str)\n'%(a)s' % y\nif s:\n    '%(k)s' % y\nx = ','.join(y)",
    "pairs with equal keys": "for q in dict([(s, 1), ('k', 2)]):\n    SEND",
    "a key of pairs": "x = dict([(s, 'q')]).get('k', 'none')",
    "items that a set has": "y = set()\ny.update([s])\ny.update(['k'])\nfor q in y:\n    SEND",
    "unpacked items that are equal": "for q in {*[s], *['k']}:\n    SEND",
    "the most common": "c = collections.Counter()\nc['a'] = len(s)\nc['b'] = 2\nx = c.most_common()[0][0]",
    "what a counter keeps": "for q in collections.Counter(k=len(s) - 1) + collections.Counter():\n    SEND",
    "what a counter keeps in place": "c = collections.Counter(k=len(s) - 1)\nc += collections.Counter()\nfor q in c:\n    SEND",
    "a list in an error": """
ys = []
try:
    raise csv.Error(ys)
except csv.Error as e:
    e.args[0].append(s)
x = ''.join(ys)
""",
    "a list in an error that is not raised": "ys = []\ne = ValueError(ys)\ne.args[0].append(s)\nx = ''.join(ys)",
    "a slice in a variable": "ys = []\n[ys, 1][slice(0, 1)][0].append(s)\nx = ''.join(ys)",
    "an assignment to a slice in a variable": "ys = ['a']\nys[slice(0, 1)] = [s]\nx = ''.join(ys)",
    "an update of a chosen dictionary": "y = {}\ng = y if 'k' in s else copy.copy(y)\ng.update(c='c')\nx = y.get('c', 'n')",
    "what writelines returns": "x = str(io.StringIO().writelines(['a']))",
    "a group that has not matched": "x = str(re.match('(k)?', 'a')[1])",
    "a column that is missing": "z = []\nfor r in csv.DictReader(['a,b', '1'], restval=z):\n    r['b'].append(s)\nx = ''.join(z)",
    "the end of a line of CSV": "y = io.StringIO()\ncsv.writer(y, lineterminator=s).writerow([])\nx = y.getvalue()",
    "a header of CSV": "y = io.StringIO()\ncsv.DictWriter(y, [s]).writeheader()\nx = y.getvalue()",
    "a break whose finally assigns": "for q in 'ab':\n    try:\n        break\n    finally:\n        x = s\n    x = 'b'",
    "a continue whose finally assigns": """
for q in 'ab':
    try:
        if q in s:
            continue
    finally:
        x = s
    x = 'b'
""",
    "keys that a format adds": "y = collections.defaultdict(str)\n'%(a)s%(b)s' % y\nfor q in y:\n    SEND",
    "keys that a translation adds": "y = collections.defaultdict(str)\ns.translate(y)\nfor q in y:\n    SEND",
    "a buffer or nothing": "y = io.StringIO('a\\nb')\nfor q in y or []:\n    if s:\n        break\nx = y.read()",
    "a buffer that gets a name": "for q in (y := io.StringIO('a\\nb')):\n    if s:\n        break\nx = y.read()",
    "a buffer of an iterator": "y = io.StringIO('a\\nb')\nfor q in next(iter([y])):\n    if s:\n        break\nx = y.read()",
    "a buffer that map makes": """
for y in map(io.StringIO, ['a\\nb']):
    for q in y:
        if s:
            break
    x = y.read()
""",
    "a buffer in a list that is cut": "y = io.StringIO('a\\nb')\nz = list(map(list, [y][: len(s)]))\nx = y.read()",
    "a buffer among unpacked lists": "y = io.StringIO('a\\nb')\nz = list(itertools.chain(*[y][: len(s)]))\nx = y.read()",
    "all lines of a buffer": "y = io.StringIO('a\\nb')\nif 'k' in s:\n    y.readlines()\nx = y.read()",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_a_difficult_program_lies_inside_its_manifest(body: str) -> None:
    lines = ["x = ''", *body.replace("SEND", CALL.format("'y'")).split("\n"), CALL.format("x")]
    names = [name for name in MODULES if re.search(rf"\b{name}\.", body)]
    head = "".join(f"import {name}\n" for name in names)
    source = f'{head}def t(s: str) -> None:\n    """Send."""\n' + "".join(f"    {line}\n" for line in lines)
    _assert_contained(source)


def _assert_contained(source: str) -> None:
    manifest = analyse(check_or_raise(source, CATALOG))
    runs = [(text, recorded(source, "t", {"s": text}, CATALOG, {}, Answers(0, steady=True))) for text in TEXTS]
    for text, run in runs:
        assert containment.outside(manifest, run, {"s": text}) is None
        assert containment.unexplained(manifest, "parameter:s", runs[0][1], run) is None


def test_a_helper_can_end_the_iteration_that_calls_it() -> None:
    _assert_contained(f"""
def _f(q: str, r: str) -> str:
    if q in r:
        raise StopIteration
    return 'a'


def t(s: str) -> None:
    \"\"\"Send.\"\"\"
    for q in list(map(lambda p: _f(p, s), 'kab')):
        {CALL.format("q")}
""")


def test_a_callback_is_called_for_each_item_that_a_helper_returns() -> None:
    _assert_contained(f"""
def _f(q: str) -> list[str]:
    return ['a', 'b', q]


def t(s: str) -> None:
    \"\"\"Send.\"\"\"
    sorted(_f(s), key=lambda q: str({CALL.format("q")}))
""")


def test_a_helper_can_return_a_buffer() -> None:
    _assert_contained(f"""import io
def _f(y: dict[str, Any]) -> Any:
    return y['a']


def t(s: str) -> None:
    \"\"\"Send.\"\"\"
    y = {{'a': io.StringIO('a\\nb')}}
    for q in _f(y):
        if s:
            break
    {CALL.format("y['a'].read()")}
""")


def test_each_call_of_a_helper_counts() -> None:
    calls = "    _send()\n" * 30
    source = f'def _send() -> None:\n    {CALL.format("")}\ndef t(s: str) -> None:\n    """Send."""\n{calls}'.replace(
        "body=", "body=''"
    )
    run = recorded(source, "t", {"s": ""}, CATALOG, {}, Answers(0))
    assert len(run.calls) == 30
    assert containment.outside(analyse(check_or_raise(source, CATALOG)), run, {"s": ""}) is None
