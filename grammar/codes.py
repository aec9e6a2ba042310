"""The codes of the diagnostics that are found while reading a source, before any rule runs."""

from __future__ import annotations

from albert_tools.grammar.finding_code import FindingCode, in_tool

_TOO_DEEP = "A reader can't follow it, and every parser recurses over it."
_NOT_ASYNC = "A call is written where its result is needed; `parallel` runs several at the same time."

CODES = (
    # The text as a whole.
    FindingCode(
        "not-text",
        "The source is not valid UTF-8.",
        "A reviewer and Python must see the same characters.",
    ),
    FindingCode(
        "source-too-large",
        "The source has too many bytes.",
        "A source is a small program that a person reviews; data belongs in files.",
    ),
    FindingCode(
        "bad-character",
        "The source contains a character that is not printable, shows nothing, or changes the direction of the text.",
        "Such characters can make a reviewer read another program than Python runs.",
        example=in_tool('return path + "\x0c"'),
        rewrite=in_tool(r'return path + "\x0c"'),
    ),
    FindingCode(
        "non-ascii-name",
        "A name has letters outside ASCII.",
        "Python treats some letters that look different as the same name, and some that look the same as different ones.",
        example=in_tool("größe = len(path)\nreturn größe"),
        rewrite=in_tool("size = len(path)\nreturn size"),
    ),
    FindingCode(
        "tab",
        "A tab is used outside a string.",
        "Editors show tabs at different widths, so indentation could deceive a reader.",
        example=in_tool("if path:\n\treturn path\nreturn None"),
        rewrite=in_tool("if path:\n    return path\nreturn None"),
    ),
    FindingCode(
        "literal-too-long",
        "A number or a string literal is too long.",
        "Long data belongs in a file.",
        example=in_tool("return " + "1" * 129),
        rewrite=in_tool("return 10**128 // 9"),
    ),
    FindingCode(
        "unterminated-string",
        "A string has no closing quote.",
        "Everything after it would be read as text.",
        example=in_tool('return "path'),
        rewrite=in_tool('return "path"'),
    ),
    FindingCode(
        "nesting-too-deep",
        "Brackets, blocks or operators are nested too deep to be read, or an if has too many branches.",
        _TOO_DEEP,
        example=in_tool("return " + "[" * 51 + "]" * 51),
        rewrite=in_tool("inner = [[[]]]\nreturn [inner]"),
    ),
    FindingCode(
        "syntax",
        "The text is not Python.",
        "The message is Python's own where it has one.",
        example=in_tool("return (path"),
        rewrite=in_tool("return path"),
    ),
    FindingCode(
        "readings-differ",
        "Albert Tools and Python read the text differently. This is a defect of Albert Tools.",
        "A program must mean what a reviewer who knows Python believes.",
    ),
    FindingCode(
        "not-formatted",
        "The text would not survive formatting. This is a defect of Albert Tools.",
        "The formatter compares the tree before and after, and leaves the text alone when they differ.",
    ),
    # Python that is outside the language.
    FindingCode(
        "no-async",
        "`async` and `await` are not in the language.",
        _NOT_ASYNC,
        example=in_tool("return await tools.read_file(path=path)").replace("def", "async def"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
    FindingCode(
        "no-with",
        "`with` is not in the language.",
        "Programs hold no files and no locks; tools open and close what they need.",
        example=in_tool("with tools.read_file(path=path) as text:\n    return text"),
        rewrite=in_tool("text = tools.read_file(path=path)\nreturn text"),
    ),
    FindingCode(
        "no-yield",
        "`yield` is not in the language.",
        "A generator function would run at another time than it is called.",
        example=in_tool("for part in path.split():\n    yield part"),
        rewrite=in_tool("parts = []\nfor part in path.split():\n    parts.append(part)\nreturn parts"),
    ),
    FindingCode(
        "no-global",
        "`global` is not in the language.",
        "Names at module level are constants, so nothing carries over from call to call.",
        example="COUNT = 0\n\n\n" + in_tool("global COUNT\nCOUNT = 1\nreturn path"),
        rewrite="COUNT = 0\n\n\n" + in_tool("count = COUNT + 1\nreturn count"),
    ),
    FindingCode(
        "no-except-star",
        "`except*` is not in the language.",
        "There are no exception groups.",
        example=in_tool("try:\n    return int(path)\nexcept* ValueError:\n    print(path)\nreturn None"),
        rewrite=in_tool("try:\n    return int(path)\nexcept ValueError:\n    print(path)\nreturn None"),
    ),
    FindingCode(
        "no-type-alias",
        "`type X = …` is not in the language.",
        "Annotations are read without evaluating anything, and only Python 3.12 and newer know the statement.",
    ),
    FindingCode(
        "no-star-parameter",
        "A function takes `*` or `**` parameters, or a lambda takes other than plain ones.",
        "A tool's schema and a reader both need each parameter by name.",
        example="def _join(*parts):\n    return parts\n\n\n" + in_tool("return _join()"),
        rewrite="def _join(parts):\n    return parts\n\n\n" + in_tool("return _join([path])"),
    ),
    FindingCode(
        "no-positional-only",
        "A function has positional-only parameters.",
        "Every parameter can be given by name.",
        example="def _twice(text, /):\n    return text * 2\n\n\n" + in_tool("return _twice(path)"),
        rewrite="def _twice(text):\n    return text * 2\n\n\n" + in_tool("return _twice(path)"),
    ),
    FindingCode(
        "no-type-parameters",
        "A function has type parameters.",
        "Annotations are read without evaluating anything, and only Python 3.12 and newer know the form.",
    ),
    FindingCode(
        "no-star-import",
        "`from … import *` is used.",
        "A reader must see where each name comes from.",
        example="from math import *\n\n\n" + in_tool("return path"),
        rewrite="from math import sqrt\n\n\n" + in_tool("return sqrt(len(path))"),
    ),
    FindingCode(
        "no-annotated-target",
        "An item or an attribute is assigned with an annotation.",
        "Only plain names take an annotation.",
        example=in_tool("row = {}\nrow[path]: int = 1\nreturn row"),
        rewrite=in_tool("row = {}\nrow[path] = 1\nreturn row"),
    ),
    FindingCode(
        "no-complex",
        "A complex number is used.",
        "JSON has no complex numbers, so they could not leave the program.",
        example=in_tool("return 1j"),
        rewrite=in_tool("return [0.0, 1.0]"),
    ),
    FindingCode(
        "no-class-pattern",
        "A class pattern has arguments.",
        "Classes are not in the language, so a type has no fields to look into.",
        example=in_tool("match path:\n    case str(text):\n        return text\nreturn None"),
        rewrite=in_tool("match path:\n    case str() as text:\n        return text\nreturn None"),
    ),
)
