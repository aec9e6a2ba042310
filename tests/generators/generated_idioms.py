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
    # Texts that are made of values.
    '<new str> = json.dumps({"k": <text>, "n": [<int>, <texts>], **<dict>}, indent=<int> % 3 or None, sort_keys=<test>)',
    '<x> = json.dumps([{1: <text>, "1": <str>, None: <int>, <text>: 0.5}, float("inf"), <test>], separators=(",", ":"))\n'
    '<new str> = "x=" + <x>',
    '<new str> = json.dumps({"a": json.dumps(<texts>), "b": (<text> + "\\ud800",), "\\ud800": <int>}, ensure_ascii=<test>)[:200]',
    "<new str> = json.dumps(<int>) + json.dumps(<text>) + json.dumps(<test>) + str(<int>)",
    '<x> = urllib.parse.urlencode({"q": <text>, "n": <int>, "all": <texts>, <str>: None})\n'
    '<new str> = "https://example.org/" + urllib.parse.quote(<text>) + "?" + <x>',
    '<new str> = urllib.parse.urlencode([("q", <text>), (<text>, <int>)]) + urllib.parse.quote_plus(<str>) + "/x"',
    '<x> = base64.b64encode(("user:" + <text>).encode())\n<new str> = "Basic " + <x>.decode() + str(<x>)[:9]',
    '<new str> = base64.urlsafe_b64encode(json.dumps(<texts>).encode("utf-8")).decode("ascii") + <str>',
    '<new str> = "\\n- ".join(y + "=" + <text> for y in <texts>) + <str>',
    "<new str> = <str>.join([y for y in <texts> if y] + [<text>])",
    # Paths that a tool has found, without their folder.
    '<x> = <text> or "docs"\nfor y in tools.find_files(pattern="*", path=<x>)["paths"]:\n'
    "    print(tools.read_file(path=posixpath.join(<text>, posixpath.relpath(y, <x>))), posixpath.relpath(y, <text>))",
    '<x> = <text> or "docs"\nfor y in tools.find_files(pattern="*", path=<x>)["paths"]:\n'
    '    print(tools.read_file(path=<text> + "/" + y.removeprefix(<x> + "/")))',
    'for y in tools.find_files(pattern="*", path="docs/./a")["paths"]:\n'
    '    print(tools.read_file(path=posixpath.join(<text>, y.split("/")[-1])))\n'
    "    print(tools.file_info(path=<str> + posixpath.basename(y)))",
    'for y in tools.list_directory(path="docs"):\n    <x> = y["path"]\n'
    '    print(tools.read_file(path=<x>.replace("txt", "md")), tools.read_file(path=<text> + "/" + <x>[5:]))\n'
    '    print(tools.read_file(path=posixpath.splitext(<x>)[0] + ".b"), tools.read_file(path=posixpath.join(<text>, <x>)))',
    # Containers of containers.
    '<x> = [{"p": y, "n": <int>} for y in <texts>]\nfor <y> in <x>:\n    print(<y>["p"], <call>)',
    '<x> = json.loads(json.dumps({"p": <text>, "q": <texts>}))\n<new str> = str(<x>["p"])',
    "<x> = collections.Counter(<texts>)\n<new texts> = [y for y, z in <x>.most_common(2)]",
    "<x> = collections.defaultdict(list)\nfor y in <texts>:\n    <x>[y[:1]].append(y)\n<new texts> = list(<x>)",
    "<x> = collections.defaultdict(lambda: [0, 0])\nfor y in <texts>:\n    <x>[y[:1]][<int> % 2] += 1\nprint(<x>[<text>], <call>)",
    "<x> = collections.defaultdict(lambda: collections.defaultdict(lambda: 'a'))\nfor y in <texts>:\n    <x>[y[:1]][y] += y\n"
    "<new str> = <x>[<str>][<text>]",
    "<x> = collections.defaultdict(collections.Counter)\nfor y in <texts>:\n    <x>[y[:1]][y] += <int>\nprint(len(<x>), <call>)",
    "<x> = collections.defaultdict(lambda: ['b', 3])\nfor y in <x>[<text>]:\n    print(y, <call>)",
    "<x> = collections.deque(<texts>, 2)\n<x>.rotate(<int> % 3)\n<new texts> = list(<x>)",
    "<new texts> = [y + z for y in <texts> for z in <texts> if y != z]",
    "<new texts> = sorted(set(<texts>) - set(<texts>))",
    "<new list> = sum([<list>, <list>], [])",
    "<new texts> = [*<texts>, *<texts>][::2]",
    # Loops that count, and those that something else ends.
    "<x> = 0\nwhile <x> < <int> % 4:\n    <x> += 1\n    <block>",
    "<x> = 0\nwhile <x> < 3 and <test>:\n    <x> += 1\n    try:\n        <block>\n    except Exception:\n        continue",
    "<x> = 3\nwhile <x>:\n    <x> -= 1\n    if <test>:\n        break\n    print(<call>)\nelse:\n    print(<call>)",
    "<x> = 0\nwhile True:\n    <x> += 1\n    if <x> > 2 or <test>:\n        break\n    <block>",
    "<x> = <texts>[:4]\nwhile (<y> := len(<x>)) > 1:\n    <x> = <x>[1:]\n    print(<y>, <call>)",
    "<x>, <y> = False, 0\nwhile not <x>:\n    <y> += 1\n    <x> = <y> > 2 or <test>\n    print(<call>)\n<new int> = <y>",
    "<x> = str(<text>)\nwhile len(<x>) < 9:\n    <x> += <text>[:3] + '.'\n<new str> = <x>",
    # Names that hide others.
    "<new texts> = [str for str in <texts>]",
    "<new list> = sorted((sum for sum in <list>), key=lambda abs: -abs)",
    "def <x>(len, sum=1):\n    list = len[:2] * sum\n    return list\n<new str> = <x>(<text>)",
    "import string as <x>\n<new str> = <x>.capwords(<text>)",
    # Functions in functions. They read the variables around them when they are called.
    "def <x>(y):\n    return y + <text>\n<new texts> = [<x>(z) for z in <texts>]",
    "def <x>(y):\n    print(y, <call>)\n    return <test>\n<new texts> = [z for z in <texts> if <x>(z)]",
    "def <x>(y):\n    return (y[::-1], <int>)\n<new texts> = sorted(<texts>, key=<x>)",
    "<x> = <text>\ndef <y>():\n    return <x>\n<x> = <text>\n<new str> = <y>() + <x>",
    "<x> = <text>\ndef <y>():\n    print(<x>, <call>)\nfor <x> in <texts>:\n    <y>()",
    "def <x>(y):\n    return y if len(y) < 2 else <x>(y[1:])\n<new str> = <x>(<text>)",
    "def <x>(y):\n    print(<call>)\n    return <x>(y - 1) if y > 0 else y\n<new int> = <x>(<int> % 3)",
    "if <test>:\n    def <x>(y):\n        return y\ntry:\n    <x>(<int>)\nexcept Exception:\n    print(<call>)",
    "if <test>:\n    import string as <x>\ntry:\n    print(<x>.capwords(<text>))\nexcept Exception:\n    print(<call>)",
    # Values that can't leave a program.
    '<x> = float("inf")\nfor y in <list>:\n    <x> = min(<x>, y)\nprint(None if <x> == float("inf") else <x>, -<x>)',
    'print({(1, <str>): <int>, -0.0: 4, 2**64: 5, b"\\xff": 6}.get((1, <text>)), float("nan"), 2**70 + <int>)',
    '<x> = b"\\xff" + <text>.encode("utf-8", "replace")\n<new str> = <x>.decode("utf-8", "replace")',
    '<new str> = (<text> + "\\ud800").encode("utf-8", "replace").decode()',
    '<x> = (<text> + "\\ud800/..")[: <int>]\nprint(posixpath.normpath(<x>) == <x>, <call>)',
    # Lambdas with names, and types.
    "<x> = lambda y, z=1: y[:z] + <text>\n<new texts> = [<x>(y) for y in <texts>]",
    "<x> = lambda y: [<call>, y][1]\n<new texts> = sorted(<texts>, key=<x>)",
    "print([isinstance(y, (int, collections.Counter)) for y in [<dict>, <list>]], isinstance(<int>, type(<int>)), <call>)",
    "print([type(y).__name__ for y in [<int>, <text>, <texts>, None]], type(<int>) == int, <call>)",
    # Other texts.
    '<new str> = "{}/{:>{}}".format(<text>, <str>, <int> % 9)',
    '<new str> = "{0}-{1!r}{n}{0}".format(<text>, <list>, n=<call>)',
    '<new str> = "{}{}".format(*[<text>, <str>], <text>)',
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

#: Statements that call a helper, change variables of before, or stand in no code that `parallel` reaches.
CHANGING = [
    # Functions that a dict holds.
    '<x> = {"a": lambda y: [<call>, y][1], "b": str, "c": lambda y: <text>}\n<new str> = <x>["c" if <test> else "a"](<text>)',
    '<x> = <text>\n<y> = {"": lambda z: z + <x>, "a": lambda z: <x>}\n<x> = <text>\nprint(<y>[""](<str>), <call>)',
    'print({"a": len, "b": lambda y: print(<call>)}["b" if <test> else "a"](<text>))',
    "if s != 'again':\n    <x> = <self>(<int>, 'again', <list>, <dict>)\n    print(<x>)",
    "<x> = <int>\ndef <y>(z):\n    nonlocal <x>\n    <x> += z\n    return <x>\nprint([<y>(z) for z in <list>], <x>)",
    "<x> = <text>\ndef <y>():\n    nonlocal <x>\n    <x> = <text>\nif <test>:\n    <y>()\n<new str> = <x>",
    "<x> = []\ndef <y>(z):\n    <x>.append(z)\nfor z in <texts>:\n    <y>(z[:99])\n<new texts> = <x>",
    "<x> = <own texts>\ndef <y>():\n    if <test>:\n        <x>.append(<text>[:99])\n<y>()",
    "try:\n    <block>\nexcept:\n    print(<call>)",
    "<x>, <y> = 3, <own texts>\nwhile <y> and <x>:\n    <x> -= 1\n    print(<y>.pop(), <call>)",
    "out.append(1e999 if <int> > 1000 else -0.0)",
    'out.append([2**63, -(2**63), b"\\xff", <text>][<int> % 9 == 0 :][-1])',
    'out.append({"k": 123456789012345678901, "\\ud800": <text>} if <int> > 1000 else {"k": <text>})',
    'out.append({(1, 2): <text>} if <int> > 1000 else {"a": float("nan")}.get(<str>))',
    'out.append(<str> or "\\ud83d" + "\\ude00")',
    "<new str> = _help(<int>, <text>)",
    "<new texts> = sorted(<texts>, key=lambda y: _help(len(y), y))",
    "<new str> = min(<texts>, key=lambda y: _help(<int>, y), default=<str>)",
    '<new str> = re.sub("[a-c]", lambda m: _help(1, m.group(0))[:9], <text>)',
    "<new texts> = [_help(1, y) for y in <texts> if y > <str>]",
    "<x> = io.StringIO()\ncsv.writer(<x>).writerow(<texts>)\n<new str> = <x>.getvalue()",
    '<x> = io.StringIO()\n<x>.write("# " + <text>)\nfor y in <texts>:\n    <x>.write(y)\n<new str> = <x>.getvalue() + <str>',
    '<x> = io.StringIO()\n<y> = csv.writer(<x>)\n<y>.writerow(["k", <text>])\n'
    "<y>.writerows([[z, <int>] for z in <texts>])\n<new str> = <x>.getvalue()",
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
