# the else of a for runs if no break was executed
def _find(xs: list, x: int) -> str:
    for y in xs:
        if y == x:
            break
    else:
        return "missing"
    return "found"

def t() -> Any:
    """Loop."""
    return [_find([1, 2], 2), _find([1, 2], 3), _find([], 1)]
# result: ["found", "missing", "missing"]
---
# continue and break
def t() -> Any:
    """Loop."""
    out = []
    for x in range(10):
        if x % 2:
            continue
        if x > 6:
            break
        out.append(x)
    return out
# result: [0, 2, 4, 6]
---
# break leaves the innermost loop
def t() -> Any:
    """Loop."""
    out = []
    for a in "ab":
        for b in "xyz":
            if b == "y":
                break
            out.append(a + b)
    return out
# result: ["ax", "bx"]
---
# removing items in a loop over the list skips some
def t() -> Any:
    """Loop."""
    xs = [1, 1, 2, 2, 3]
    for x in xs:
        if x < 3:
            xs.remove(x)
    return xs
# result: [1, 2, 3]
---
# a dict that changes its size in a loop over it
def t() -> Any:
    """Loop."""
    d = {"a": 1, "b": 2}
    for k in d:  # raises: RuntimeError "dictionary changed size during iteration"
        if k == "a":
            d.pop(k)
    return d
---
# finally runs after every way of leaving the try
def _f(x: int, log: list) -> str:
    try:
        if x == 1:
            return "returned"
        if x == 2:
            raise ValueError("v")
        log.append("body")
    except ValueError:
        log.append("handler")
        return "handled"
    else:
        log.append("else")
    finally:
        log.append("finally")
    return "through"

def t() -> Any:
    """Try."""
    log = []
    return [_f(1, log), _f(2, log), _f(3, log), log]
# result: ["returned", "handled", "through", ["finally", "handler", "finally", "body", "else", "finally"]]
---
# finally in a loop, with continue and break
def t() -> Any:
    """Try."""
    log = []
    for x in range(4):
        try:
            if x == 1:
                continue
            if x == 2:
                break
            log.append(x)
        finally:
            log.append("f")
    return log
# result: [0, "f", "f", "f"]
---
# the value of a return is computed before finally
def _f() -> list:
    x = [1]
    try:
        return [x[0], x]
    finally:
        x[0] = 2
        x = [3]
        print(x)

def t() -> Any:
    """Try."""
    return _f()
# prints: "[3]"
# result: [1, [2]]
---
# the first matching handler runs
def t() -> Any:
    """Try."""
    try:
        return {}["a"]
    except LookupError as e:
        return ["lookup", str(e), e.args]
    except KeyError:
        return "key"
# result: ["lookup", "'a'", ["a"]]
---
# a tuple of exceptions, and an exception outside it
def _f(x: Any) -> Any:
    try:
        return 1 / x
    except (ZeroDivisionError, KeyError):
        return "zero"

def t() -> Any:
    """Try."""
    return [_f(0), _f("a")]
# raises: TypeError "unsupported operand type(s) for /: 'int' and 'str'"
---
# an error in a handler, and in else
def t() -> Any:
    """Try."""
    try:
        x = 1
    except ValueError:
        x = 2
    else:
        raise ValueError(f"from else {x}")  # raises: ValueError "from else 1"
    return x
---
# a bare raise raises the caught error again
def t() -> Any:
    """Try."""
    try:
        int("x")
    except ValueError:
        print("logged")
        raise
    return 1
# prints: "logged"
# raises: ValueError "invalid literal for int() with base 10: 'x'"
---
# the caught error is raised again by its name
def t() -> Any:
    """Try."""
    try:
        int("x")
    except ValueError as e:
        raise e
    return 1
# raises: ValueError "invalid literal for int() with base 10: 'x'"
---
# raise from
def t() -> Any:
    """Try."""
    try:
        return {}["k"]
    except KeyError as e:
        raise ToolError(f"no such key: {e}", code="no_key") from e  # raises: ToolError[no_key] "no such key: 'k'"
---
# raise of a class, and without a message
def t() -> Any:
    """Try."""
    raise ValueError  # raises: ValueError ""
---
# an exception's arguments
def t() -> Any:
    """Try."""
    found = []
    for x in [1, 2, 3]:
        try:
            if x == 1:
                raise ValueError("a", 2)
            if x == 2:
                raise KeyError
            raise ToolError("m", code="c", retryable=True)
        except ToolError as e:
            found.append([e.message, e.code, e.retryable, e.tool, str(e), e.args])
        except Exception as e:
            found.append([str(e), e.args])
    return found
# result: [["('a', 2)", ["a", 2]], ["", []], ["m", "c", True, None, "m", ["m"]]]
---
# nested try: the outer handler runs if the inner handlers don't match
def t() -> Any:
    """Try."""
    log = []
    try:
        try:
            raise IndexError("i")
        except KeyError:
            log.append("inner")
        finally:
            log.append("inner finally")
    except IndexError as e:
        log.append(str(e))
    return log
# result: ["inner finally", "i"]
---
# an error in finally replaces the earlier one
def t() -> Any:
    """Try."""
    try:
        try:
            raise ValueError("first")
        finally:
            raise KeyError("second")
    except ValueError:
        return "first"
    except KeyError as e:
        return str(e)
# result: "'second'"
---
# error messages are the same as in Python
def _f(x: int) -> Any:
    xs, d = [1], {}
    match x:
        case 0:
            return xs[1]
        case 1:
            return d["k"]
        case 2:
            return 1 // 0
        case 3:
            return xs.index(9)
        case 4:
            return int("1.5")
        case 5:
            return "a" + 1
        case 6:
            return next(iter([]))
        case 7:
            return b"\xff".decode()
    return 1 < "a"

def t() -> Any:
    """Try."""
    found = []
    for i in range(9):
        try:
            found.append(_f(i))
        except StopIteration:
            found.append("stop")
        except Exception as e:
            found.append(str(e))
    return found
# result: ["list index out of range", "'k'", "integer division or modulo by zero", "9 is not in list", "invalid literal for int() with base 10: '1.5'", 'can only concatenate str (not "int") to str', "stop", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", "'<' not supported between instances of 'int' and 'str'"]
---
# helpers recurse
def _depth(x: Any) -> int:
    if isinstance(x, list):
        return 1 + max([_depth(y) for y in x], default=0)
    return 0

def _fact(n: int) -> int:
    return 1 if n < 2 else n * _fact(n - 1)

def t() -> Any:
    """Recurse."""
    return [_depth([1, [2, [3]], []]), _fact(20)]
# result: [3, 2432902008176640000]
---
# helpers recurse mutually, and as callbacks
def _even(n: int) -> bool:
    return True if n == 0 else _odd(n - 1)

def _odd(n: int) -> bool:
    return False if n == 0 else _even(n - 1)

def _flat(x: Any) -> list:
    return sum(map(_flat, x), []) if isinstance(x, list) else [x]

def t() -> Any:
    """Recurse."""
    return [_even(10), _odd(7), _flat([1, [2, [3, []]]]), sorted([[2], [1]], key=_flat)]
# result: [True, True, [1, 2, 3], [[1], [2]]]
---
# match: literals by ==, singletons by is
def _kind(x: Any) -> str:
    match x:
        case None:
            return "none"
        case True:
            return "true"
        case 0:
            return "zero"
        case -1 | 1:
            return "one"
        case "a" "b":
            return "ab"
        case 2.5:
            return "float"
    return "other"

def t() -> Any:
    """Match."""
    return [_kind(x) for x in [None, True, False, 0.0, 1, -1, "ab", 2.5, "x", []]]
# result: ["none", "true", "zero", "zero", "one", "one", "ab", "float", "other", "other"]
---
# match: sequences are lists and tuples, not strings
def _kind(x: Any) -> Any:
    match x:
        case []:
            return "empty"
        case [a]:
            return ["one", a]
        case [1, b, *_]:
            return ["from one", b]
        case [a, *rest, b]:
            return ["ends", a, rest, b]
        case {}:
            return "dict"
        case str() | bytes() as s:
            return ["text", len(s)]

def t() -> Any:
    """Match."""
    return [_kind(x) for x in [[], (5,), [1, 2, 3], (7, 8, 9), "ab", {"k": 1}, 5]]
# result: ["empty", ["one", 5], ["from one", 2], ["ends", 7, [8], 9], ["text", 2], "dict", None]
---
# match: mappings require keys, and **rest binds the others
def _kind(x: Any) -> Any:
    match x:
        case {"type": "file", "size": int() as n} if n > 10:
            return ["big", n]
        case {"type": "file", **rest}:
            return ["file", rest]
        case {"a": {"b": [_, c]}}:
            return c
        case {1: v}:
            return v
        case _:
            return None

def t() -> Any:
    """Match."""
    return [_kind(x) for x in [{"type": "file", "size": 11}, {"type": "file", "size": 1}, {"a": {"b": (1, 2)}}, {1: "k"}, {}]]
# result: [["big", 11], ["file", {"size": 1}], 2, "k", None]
---
# match: bare types, and bool is an int
def _kind(x: Any) -> str:
    match x:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"
        case list() | tuple():
            return "sequence"
        case dict():
            return "dict"
        case _:
            return "other"

def t() -> Any:
    """Match."""
    return [_kind(x) for x in [True, 1, 1.0, "", [], (), {}, None, {1}]]
# result: ["bool", "int", "float", "str", "sequence", "sequence", "dict", "other", "other"]
---
# match: a capture stays bound when the guard fails
def t() -> Any:
    """Match."""
    y = None
    match [1, 2]:
        case [x, y] if x > 5:
            return "no"
        case other:
            return [other, y]
# result: [[1, 2], 2]
---
# match of several subjects
def _move(at: Any, way: str) -> Any:
    match at, way:
        case (x, y), "up":
            return [x, y + 1]
        case (x, y), "left":
            return [x - 1, y]
        case _:
            return at

def t() -> Any:
    """Match."""
    return [_move([0, 0], "up"), _move((0, 0), "left"), _move("?", "up")]
# result: [[0, 1], [-1, 0], "?"]
---
# a name that only some paths assign: Python's own error on the others
def _f(xs: list) -> int:
    for x in xs:
        last = x
    return last  # warning: [unassigned] "'last' may not have a value here"

def t() -> Any:
    """Last."""
    return [_f([1, 2]), _f([])]
# raises: UnboundLocalError "cannot access local variable 'last' where it is not associated with a value"
---
# the error of a name without a value can be caught, in an expression, a comprehension, a lambda and a parallel body
def _f(n: int) -> Any:
    if n > 9:
        y = n
    try:
        match n:
            case 0:
                return y  # warning: [unassigned] "'y' may not have a value here"
            case 1:
                return list(y + x for x in [1])
            case 2:
                return sorted([1, 2], key=lambda x: y)
            case 3:
                return parallel(tools.file_info(path=y) for x in [1])
            case 4:
                return parallel(tools.file_info(path=x) for x in y)
            case 5:
                y += 1
    except Exception as error:
        return str(error)

def t() -> Any:
    """Read."""
    return [_f(n)[:26] for n in range(6)]
# result: ["cannot access local variab", "cannot access free variabl", "cannot access free variabl", "cannot access free variabl", "cannot access local variab", "cannot access local variab"]
---
# an exception's name is gone after its handler, on the path through the handler
def t() -> Any:
    """Last."""
    e = "none"
    try:
        int("x")
    except ValueError as e:
        print(e)
    return e  # warning: [unassigned] "'e' may have no value here: Python removes an exception's name when its handler ends"
# prints: "invalid literal for int() with base 10: 'x'"
# raises: UnboundLocalError "cannot access local variable 'e' where it is not associated with a value"
---
# a worklist: a list that grows in the loop over it
def t() -> Any:
    """Walk."""
    tree = {"a": ["b", "c"], "b": ["d"], "c": ["d"]}
    pending = ["a"]
    for name in pending:
        for below in tree.get(name, []):
            if below not in pending:
                pending.append(below)
    else:
        print("all")
    return pending
# prints: "all"
# result: ["a", "b", "c", "d"]
---
# what a growing loop reads: a pair, a dict that changes, a value that can't be read, an iterator that fails
def _f(n: int) -> Any:
    xs, d, out = [3, 0, 1], {1: 1}, []
    try:
        match n:
            case 0:
                for i, x in enumerate(xs):
                    if i > 4:
                        break
                    xs.append(x)
            case 1:
                for k, v in d.items():
                    d.update({k + 1: v})
            case 2:
                for x in n:
                    n.append(x)
            case 3:
                for x in map(lambda x: 6 // x, xs):
                    xs.append(x)
            case 4:
                for x in map(lambda x: next(iter(out)), xs):
                    xs.append(x)
            case 5:
                for x in (x + 1 for x in xs if x < 4):
                    xs.append(x)
    except Exception as error:
        out.append(str(error))
    return [xs, len(d), out]

def t() -> Any:
    """Grow."""
    return [_f(n) for n in range(6)]
# result: [[[3, 0, 1, 3, 0, 1, 3, 0], 1, []], [[3, 0, 1], 2, ["dictionary changed size during iteration"]], [[3, 0, 1], 1, ["'int' object is not iterable"]], [[3, 0, 1, 2], 1, ["integer division or modulo by zero"]], [[3, 0, 1], 1, []], [[3, 0, 1, 4, 1, 2, 2, 3, 3, 4, 4], 1, []]]
---
# the last caught exception is raised after the loop
def t() -> Any:
    """Retry."""
    last = None
    for path in ["a", "b"]:
        try:
            return tools.read_file(path=path)
        except ToolError as error:
            last = error
    raise last
# calls: read_file(path="a") raises permission_denied "not a"
# calls: read_file(path="b") raises not_found "no b"
# raises: ToolError[not_found] "no b"
---
# the first of several kept exceptions is raised
def t() -> Any:
    """Retry."""
    errors = []
    for path in ["a", "b"]:
        try:
            return tools.read_file(path=path)
        except ToolError as error:
            errors.append(error)
            print(error.code, error.args)
    raise errors[0]
# calls: read_file(path="a") raises permission_denied "not a"
# calls: read_file(path="b") raises not_found "no b"
# prints: "permission_denied ('not a',)"
# prints: "not_found ('no b',)"
# raises: ToolError[permission_denied] "not a"
---
# what is raised when nothing was caught
def _f(n: int) -> Any:
    last, out = None, []
    try:
        if n == 1:
            raise NotImplementedError("later")
        if n == 2:
            last = ValueError("made")
        if n == 3:
            last = next(iter(out), StopIteration("s"))
        raise last
    except (NotImplementedError, ValueError, StopIteration) as error:
        out.append(error)
    except Exception as error:
        return str(error)
    try:
        raise last or out[0] from out[0]
    except RuntimeError as error:
        return [str(error), isinstance(error, RuntimeError)]
    except Exception as error:
        return error.args

def t() -> Any:
    """Raise."""
    return [_f(n) for n in range(4)]
# result: ["exceptions must derive from BaseException", ["later", True], ["made"], ["s"]]
---
# an exception that a parallel body has caught is raised later
def _read(path: str) -> Any:
    try:
        return tools.read_file(path=path)
    except ToolError as error:
        return error

def t() -> Any:
    """Read."""
    for found in parallel(_read(path) for path in ["a", "b"]):
        if isinstance(found, ToolError):
            raise found
    return None
# calls: read_file(path="a") -> "text"
# calls: read_file(path="b") raises permission_denied "not b"
# raises: ToolError[permission_denied] "not b"
