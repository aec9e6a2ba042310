"""Statements that are easily misjudged: templates for the generator of programs.

A part in angle brackets stands for something else: ``<int>``, ``<texts>`` and so on for an expression of the kind, ``<text>`` for a
text as programs make paths, ``<test>`` for a question about a parameter, ``<call>`` for a call of a tool, ``<own texts>`` for a
variable of the kind, ``<new texts>`` for a new one, ``<block>`` for statements, ``<x>``, ``<y>`` for names that nothing else uses.
"""

from __future__ import annotations

#: Statements that change nothing but their own variables.
READING = [
    # Unpacked arguments.
    '<new str> = max(*<texts>, <text>, "a")',
    '<new str> = posixpath.join("docs", *<texts>)',
    "<new texts> = sorted(set().union(*[<texts>, <texts>]))",
    "<new texts> = [str(y) for y in zip(*[<texts>, <texts>])]",
    "<new dict> = dict(<dict>, a=<int>)",
    "<new dict> = {**<dict>, **dict.fromkeys(<texts>, <int>)}",
    "print(*<texts>, sep=<str>)",
    "<new texts> = list(map(lambda p, q: p + q, *[<texts>, <texts>]))",
    # Functions as arguments.
    "<new texts> = sorted(<texts>, key=len)",
    "<new texts> = sorted(<texts>, key=lambda y: (len(y), y), reverse=<test>)",
    "<new str> = min(<texts>, key=lambda y: y[::-1], default=<text>)",
    "<new str> = max(<text>, <text>, key=lambda y: y.count(<str>))",
    "<new int> = bisect.bisect_left([1, 3, 5], <int>, key=lambda y: y + <int>)",
    "<new texts> = heapq.nlargest(2, <texts>, key=lambda y: y.lower())",
    '<new texts> = [k + "".join(g) for k, g in itertools.groupby(<texts>, key=lambda y: y[:1])]',
    "<new texts> = list(itertools.chain(<texts>, <texts>))",
    "<new list> = list(itertools.accumulate(<list>, lambda p, q: p + q * 2))",
    "<new str> = functools.reduce(lambda p, q: (p + q)[:50], <texts>, <str>)",
    # Regular expressions.
    '<new texts> = re.split("(,| )", <text>)',
    '<new texts> = re.split("[/.]", <text>, maxsplit=1)',
    '<new texts> = re.findall("[a-z]+", <text>)',
    '<new str> = re.sub("[aeiou]", lambda m: m.group(0) + <str>, <text>)',
    '<new texts> = [m.group(1) for m in re.finditer("(.)[.,/]", <text>)]',
    '<x> = re.match("([a-z]*)/(.*)", <text>)\n<new str> = <x>.group(2) if <x> else <str>',
    # Assignments in expressions.
    "if (<x> := <text>) and <test>:\n    <block>\nprint(<x>)",
    "if <test> and (<x> := <text>) == <str>:\n    print(<x>)",
    "<new texts> = [<x> for y in <texts> if (<x> := y.strip()) != <str>]",
    # Calls whose number is decided by a consumer.
    "print(any([<call>, <test>][1] for y in <texts>))",
    "print(all([<call>, <test>][1] for y in <list>))",
    "print(next((y for y in <texts> if [<call>, <test>][1]), <str>))",
    "<x> = map(lambda y: [<call>, <test>][1], <texts>)\nif any(<x>):\n    print(1)",
    "<x> = ([<call>, y][1] for y in <texts>)\nfor y in <x>:\n    if <test>:\n        break",
    "for y, z in zip(<texts>, map(lambda q: [<call>, q][1], <texts>)):\n    print(y, z)",
    "print(<str> < <str> < str(<call>))",
    "print(<test> and <call>)",
    "print(<call> if <test> else <int>)",
    # Handlers that leave, and what runs then.
    "for y in <texts>:\n    try:\n        <block>\n    except ToolError:\n        continue\n    finally:\n        print(<str>)",
    "<x> = <text>\ntry:\n    <x> = str(<call>)\n    print(int(<str>))\nexcept Exception:\n    <x> = <text>\nprint(<x>)",
    "try:\n    raise ValueError(<text>, <int>)\nexcept ValueError as error:\n    <x> = str(error.args[0])\n    print(<x>)",
    "for y in <list>:\n    if <test>:\n        break\nelse:\n    <block>",
    # Buffers and tables.
    "<x> = io.StringIO(<text>)\nfor y in <x>:\n    if <test>:\n        break\n<new str> = <x>.read()",
    "<x> = io.StringIO()\n<x>.write(<text>)\n<x>.seek(<int> % 3)\n<new str> = <x>.readline()",
    "for y in csv.reader(<text>.splitlines()):\n    print(y, <call>)",
    "<new texts> = [y[0] for y in csv.reader(<texts>) if y]",
    # Containers of containers.
    '<x> = [{"p": y, "n": <int>} for y in <texts>]\nfor <y> in <x>:\n    print(<y>["p"], <call>)',
    '<x> = json.loads(json.dumps({"p": <text>, "q": <texts>}))\n<new str> = str(<x>["p"])',
    "<x> = collections.Counter(<texts>)\n<new texts> = [y for y, z in <x>.most_common(2)]",
    "<x> = collections.defaultdict(list)\nfor y in <texts>:\n    <x>[y[:1]].append(y)\n<new texts> = list(<x>)",
    "<x> = collections.deque(<texts>, 2)\n<x>.rotate(<int> % 3)\n<new texts> = list(<x>)",
    "<new texts> = [y + z for y in <texts> for z in <texts> if y != z]",
    "<new texts> = sorted(set(<texts>) - set(<texts>))",
    "<new list> = sum([<list>, <list>], [])",
    "<new texts> = [*<texts>, *<texts>][::2]",
    # Other texts.
    '<x> = <text>\n<y> = <int> % 9\n<new str> = f"{<x>:>{<y>}}"',
    '<new str> = "%(a)s%(b)d" % {"a": <text>, "b": <int>}',
    '<new str> = <text>.translate(str.maketrans("ab/", "xyz"))',
    '<new str> = posixpath.relpath("docs/" + <str>.strip("/"), "docs")',
    "<new texts> = <text>.splitlines(True)",
    "<new texts> = <text>.rsplit(<str> or None, 1)",
    '<new str> = <text>.zfill(<int> % 9).center(7, <str>[:1] or "-")',
    "match <texts>:\n    case [y, *z] if y > <str>:\n        print(y, z, <call>)\n    case _:\n        print(<call>)",
    'match {"k": <text>}:\n    case {"k": "a" | "" as y, **z}:\n        print(y, z)\n    case _:\n        print(0)',
    "match [<int>, <text>]:\n    case [0 | 1 as y, str() as z]:\n        print(y, <call>)\n    case _:\n        print(0)",
]

#: Statements that call a helper, or change variables of before.
CHANGING = [
    "<new str> = _help(<int>, <text>)",
    "<new texts> = sorted(<texts>, key=lambda y: _help(len(y), y))",
    "<new str> = min(<texts>, key=lambda y: _help(<int>, y), default=<str>)",
    '<new str> = re.sub("[a-c]", lambda m: _help(1, m.group(0))[:9], <text>)',
    "<new texts> = [_help(1, y) for y in <texts> if y > <str>]",
    "<x> = io.StringIO()\ncsv.writer(<x>).writerow(<texts>)\n<new str> = <x>.getvalue()",
    "<own dict>.update(a=<int>, b=<int>)",
    "<own dict>.update(zip(<texts>, <list>))",
    "print(<own dict>.setdefault(<str>[:9], <int>))",
    "print(<own dict>.pop(<str>, <int>))",
    "<own texts>[:1] = <texts>[:2]",
    "del <own texts>[<int> % 3:]",
    "<own texts>.insert(<int>, <text>[:99])",
    "<own texts>.extend(y[:99] for y in <texts>[:3])",
    "<own texts>.sort(key=lambda y: y[::-1], reverse=<test>)",
    "if <own texts>:\n    print(<own texts>.pop())",
    "<x> = <own texts> if <test> else []\n<x>.append(<text>[:99])",
    "(<own texts> or [<str>]).append(<text>[:99])",
    "[<own texts>, <own texts>][<int> % 2].append(<text>[:99])",
    '<x> = {"k": <own texts>}\n<x>["k"].append(<text>[:99])',
    '<x> = {"k": <own texts>}\n<x>.get("k").reverse()',
    "for <x> in [<own texts>, <own texts>]:\n    <x>.append(<text>[:99])",
    "heapq.heapify(<own texts>)\nheapq.heappush(<own texts>, <text>[:99])",
    "bisect.insort(<own texts>, <text>[:99], key=len)",
    "<own texts> *= <int> % 2",
    "try:\n    <own texts>.remove(<str>)\nexcept ValueError:\n    <block>",
    "for <x>, <y> in [(<own texts>, <str>)]:\n    <x>[:] = [<y>[:99]]",
    "<x> = copy.copy([<own texts>, <own dict>])\n<x>[0].clear()",
    "<x> = copy.deepcopy([<own texts>])\n<x>[0].append(<text>)\n<new texts> = <x>[0]",
]
