import json
import operator
import re


_TOKEN = re.compile(r"""\s*(?:(\.\.|\.|\[|\]|\(|\)|\?|\*|@|\$|==|!=|<=|>=|<|>|&&|\|\||,|:|!)|(-?\d+(?:\.\d+)?)|'([^']*)'|"([^"]*)"|([A-Za-z_][\w-]*))""")


def _tokens(query: str) -> list:
    position, found = 0, []
    while position < len(query.rstrip()):
        match = _TOKEN.match(query, position)
        if not match:
            raise ToolError(f"column {position + 1}: {query[position]!r} is not understood")
        sign, number, single, double, word = match.groups()
        if sign:
            found.append(("sign", sign))
        elif number:
            found.append(("number", float(number) if "." in number else int(number)))
        elif single is not None or double is not None:
            found.append(("text", single if single is not None else double))
        else:
            found.append(("word", word))
        position = match.end()
    found.append(("end", "the end"))
    return found


def _children(value: Any) -> list:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return list(value)
    return []


def _descendants(value: Any) -> list:
    found = [value]
    for child in _children(value):
        found.extend(_descendants(child))
    return found


def _compare(sign: str, left: Any, right: Any) -> bool:
    if sign == "==":
        return left == right
    if sign == "!=":
        return left != right
    if isinstance(left, str) != isinstance(right, str) or left is None or right is None:
        return False
    if isinstance(left, (dict, list)) or isinstance(right, (dict, list)):
        return False
    match sign:
        case "<":
            return operator.lt(left, right)
        case "<=":
            return operator.le(left, right)
        case ">":
            return operator.gt(left, right)
        case _:
            return operator.ge(left, right)


def _select(tokens: list, position: int, values: list, root: Any) -> tuple:
    """Follow the steps of a path from a position; return what they reach and the position behind them."""
    while True:
        token = tokens[position]
        if token == ("sign", "..") or token == ("sign", "."):
            if token[1] == "..":
                values = [d for v in values for d in _descendants(v)]
            position += 1
            kind, name = tokens[position]
            if (kind, name) == ("sign", "["):
                continue
            position += 1
            if (kind, name) == ("sign", "*"):
                values = [c for v in values for c in _children(v)]
            elif kind == "word":
                values = [v[name] for v in values if isinstance(v, dict) and name in v]
            else:
                raise ToolError(f"a name is missing after {token[1]!r}")
        elif token == ("sign", "["):
            position += 1
            kind, key = tokens[position]
            if (kind, key) == ("sign", "*"):
                values = [c for v in values for c in _children(v)]
                position += 1
            elif (kind, key) == ("sign", "?"):
                kept, after = [], position
                for value in values:
                    for child in _children(value):
                        truth, after = _either(tokens, position + 1, child, root)
                        if truth:
                            kept.append(child)
                if after == position:
                    _, after = _either(tokens, position + 1, None, root)
                values, position = kept, after
            elif kind == "text":
                values = [v[key] for v in values if isinstance(v, dict) and key in v]
                position += 1
            else:
                start = stop = None
                if kind == "number":
                    start = key
                    position += 1
                if tokens[position] == ("sign", ":"):
                    position += 1
                    if tokens[position][0] == "number":
                        stop = tokens[position][1]
                        position += 1
                    values = [c for v in values if isinstance(v, list) for c in v[start:stop]]
                elif start is None:
                    raise ToolError(f"{tokens[position][1]!r} is not understood in [ ]")
                else:
                    values = [v[start] for v in values if isinstance(v, list) and -len(v) <= start < len(v)]
            if tokens[position] != ("sign", "]"):
                raise ToolError("a ] is missing")
            position += 1
        else:
            break
    return values, position


def _operand(tokens: list, position: int, item: Any, root: Any) -> tuple:
    kind, value = tokens[position]
    if kind in ("number", "text"):
        return [value], position + 1
    if kind == "word":
        names = {"true": True, "false": False, "null": None}
        if value not in names:
            raise ToolError(f"{value} is not understood in a filter")
        return [names[value]], position + 1
    if value in ("@", "$"):
        return _select(tokens, position + 1, [item if value == "@" else root], root)
    raise ToolError(f"{value!r} is not understood in a filter")


def _test(tokens: list, position: int, item: Any, root: Any) -> tuple:
    if tokens[position] == ("sign", "!"):
        truth, position = _test(tokens, position + 1, item, root)
        return not truth, position
    if tokens[position] == ("sign", "("):
        truth, position = _either(tokens, position + 1, item, root)
        if tokens[position] != ("sign", ")"):
            raise ToolError("a ) is missing")
        return truth, position + 1
    left, position = _operand(tokens, position, item, root)
    sign = tokens[position][1]
    if sign in ("==", "!=", "<", "<=", ">", ">="):
        right, position = _operand(tokens, position + 1, item, root)
        return any(_compare(sign, a, b) for a in left for b in right), position
    return bool(left), position


def _both(tokens: list, position: int, item: Any, root: Any) -> tuple:
    truth, position = _test(tokens, position, item, root)
    while tokens[position] == ("sign", "&&"):
        other, position = _test(tokens, position + 1, item, root)
        truth = truth and other
    return truth, position


def _either(tokens: list, position: int, item: Any, root: Any) -> tuple:
    truth, position = _both(tokens, position, item, root)
    while tokens[position] == ("sign", "||"):
        other, position = _both(tokens, position + 1, item, root)
        truth = truth or other
    return truth, position


@example(
    arguments={"path": "b.json", "query": "$.books[?(@.price < 10 && @.tags)].title"},
    files={"b.json": '{"books": [{"title": "A", "price": 5, "tags": []}, {"title": "B", "price": 12}, {"title": "C", "price": 1}]}'},
    result=["A"],
)
@example(arguments={"path": "b.json", "query": "$..n[-1]"}, files={"b.json": '{"n": [1, {"n": [2, 3]}]}'}, result=[{"n": [2, 3]}, 3])
def query_json(path: str, query: str) -> list:
    """Find the values in a JSON file that a JSONPath expression selects.

    Args:
        path: The JSON file.
        query: The expression: names, [n], [a:b], [*], .., and filters [?(@.price < 10 && @.name == "x")].
    """
    root = json.loads(tools.read_file(path=path))
    tokens = _tokens(query)
    if tokens[0] != ("sign", "$"):
        raise ToolError("an expression begins with $")
    values, position = _select(tokens, 1, [root], root)
    if tokens[position][0] != "end":
        raise ToolError(f"{tokens[position][1]!r} is not understood")
    return values
