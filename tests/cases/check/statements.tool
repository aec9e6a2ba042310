# return, break and continue in finally
def t(xs: list) -> Any:
    """Leave."""
    for x in xs:
        try:
            print(x)
        finally:
            if x:
                break  # error: 17 [finally-leaves] "'break' in a finally block would swallow errors"
            else:
                continue  # error: 17 [finally-leaves] "'continue' in a finally block would swallow errors"
    try:
        print("a")
    finally:
        return 1  # error: 9 [finally-leaves] "'return' in a finally block would swallow errors"
---
# a loop inside finally may use break
def t(xs: list) -> Any:
    """Leave."""
    try:
        print("a")
    finally:
        for x in xs:
            if x:
                break
            continue
---
# break and continue outside a loop
def t(xs: list) -> Any:
    """Leave."""
    if xs:
        break  # error: 9 [outside-loop] "'break' is outside a loop"
    else:
        continue  # error: 9 [outside-loop] "'continue' is outside a loop"
---
# in the else of a loop, break belongs to the outer loop
def t(rows: list) -> Any:
    """Leave."""
    for row in rows:
        for x in row:
            if x:
                break
        else:
            continue
        print(row)
    else:
        break  # error: 9 [outside-loop] "'break' is outside a loop"
---
# a handler after except Exception is unreachable
def t(path: str) -> Any:
    """Catch."""
    try:
        return tools.read_file(path=path)
    except Exception:
        return None
    except ToolError:  # warning: 12 [unreachable] "a handler of Exception above catches this already"
        return 1
---
# every exception that can be caught
def t(d: dict) -> Any:
    """Catch."""
    try:
        return d["a"][0] / len(d)
    except ToolError as e:
        return e.code
    except (KeyError, IndexError):
        return 1
    except ZeroDivisionError:
        return 2
    except (ArithmeticError, LookupError, OverflowError, RuntimeError, UnicodeError, AssertionError) as e:
        return str(e)
    except (TypeError, ValueError, AttributeError, UnicodeDecodeError, UnicodeEncodeError, StopIteration):
        return 3
    except Exception:
        return 4
---
# a handler of something that is not an exception
def t(d: dict) -> Any:
    """Catch."""
    try:
        return d["a"]
    except "KeyError":  # error: 12 [except] "only exceptions of the language can be caught"
        return 1
    except (str, KeyError):
# error: 13 [except] "only exceptions of the language can be caught"
# error: 13 [function-value] "the type 'str' can't be used as a value"
        return 2
---
# a handler of an exception of an unknown library
def t(d: dict) -> Any:
    """Catch."""
    try:
        return d["a"]
    except requests.HTTPError:  # error: 12 [unknown-module] "the module 'requests' is not in the language"
        return 1
    except subprocess.TimeoutExpired as e:  # error: 12 [unknown-module] "the module 'subprocess' is not in the language"
        return 2
---
# raise of values that are not exceptions
def t(d: dict) -> Any:
    """Raise."""
    if d:
        raise "text"  # error: 15 [raise] "only exceptions can be raised"
    if not d:
        raise d  # error: 15 [raise] "only exceptions can be raised"
    raise Error("x")  # error: 11 [unknown-name] "nothing is named 'Error'; did you mean 'KeyError'?"
---
# raise of a caught exception that a variable or a list keeps, and of what a helper returns
def _problem(error: Any) -> Any:
    if error is None:
        raise error
    return NotImplementedError("x")

def t(d: dict) -> Any:
    """Raise."""
    last, errors = None, []
    try:
        return d["a"]
    except KeyError as error:
        last = error
        errors.append(error)
    for error in errors:
        raise error
    if d:
        raise last or ValueError("nothing was tried")
    elif last:
        raise errors[-1] if errors else NotImplementedError("x")
    raise _problem(last)
---
# raise of the tool's arguments, of constants and of results of tools
E = "text"

def t(d: dict) -> Any:
    """Raise."""
    if d:
        raise E  # error: 15 [raise] "only exceptions can be raised"
    if not d:
        raise tools.read_file(path="a")  # error: 15 [raise] "only exceptions can be raised"
    try:
        return d["a"]
    except KeyError as error:
        raise error or "text"  # error: 15 [raise] "only exceptions can be raised"
---
# raise ToolError, with a code
def t(d: dict) -> Any:
    """Raise."""
    if d:
        raise ToolError("the file is empty", code="empty_file", retryable=True)
    raise ToolError("a", "b", tool="x")  # error: 11 [raise] "ToolError takes a message, and code= and retryable= by name"
---
# raise of an exception that is not in the language
def t(d: dict) -> Any:
    """Raise."""
    if d:
        raise FileNotFoundError("x")  # error: 15 [outside-name] "'FileNotFoundError' is not in the language"
    raise TimeoutError  # error: 11 [outside-name] "'TimeoutError' is not in the language"
---
# raise the caught error again
def t(d: dict) -> Any:
    """Raise."""
    try:
        return d["a"]
    except KeyError as e:
        if d:
            raise
        raise e
---
# a bare raise outside a handler
def t(d: dict) -> Any:
    """Raise."""
    raise  # error: 5 [bare-raise] "a bare raise is allowed only in a handler"
---
# raise from None, and from a call
def t(d: dict) -> Any:
    """Raise."""
    try:
        return d["a"]
    except KeyError:
        raise ToolError("no a") from None
---
# assert with a message
def t(d: dict) -> Any:
    """Assert."""
    assert d, "empty"
    assert isinstance(d, dict)
    return d
---
# del of items and slices
def t(d: dict, xs: list) -> Any:
    """Delete."""
    del d["a"], xs[0], xs[1:2]
    return d
---
# del of names
def t(d: dict, xs: list) -> Any:
    """Delete."""
    del d  # error: 9 [delete] "del removes items only"
    del xs[0], xs  # error: 16 [delete] "del removes items only"
    return 1
---
# an ellipsis is not a statement
def t(d: dict) -> Any:
    """Later."""
    ...  # error: 5 [ellipsis] "'...' is allowed only in annotations"
---
# pass is a statement
def t(d: dict) -> Any:
    """Later."""
    pass
---
# unpacking in every form
def t(d: dict, xs: list) -> Any:
    """Unpack."""
    a, b = xs
    (c, [e, *f]), g = xs
    *h, i = xs
    [j, k] = xs
    for m, (n, *o) in xs:
        d[m], xs[0] = n, o
    d["x"], xs[1:2] = 1, [2]
    a = b = c
    return [a, b, c, e, f, g, h, i, j, k, {**d}, [*xs, *f]]
---
# a single starred target
def t(xs: list) -> Any:
    """Unpack."""
    *a = xs  # error: 5 [syntax] "a starred name outside a list or tuple can't be assigned to"
    return a
---
# a starred expression as a statement
def t(xs: list) -> Any:
    """Unpack."""
    *xs  # error: 5 [starred] "a starred expression is not allowed here"
    return xs
---
# an annotated local
def t(xs: list) -> Any:
    """Annotate."""
    n: int = 0
    best: str | None = None
    for x in xs:
        n += x
    return [n, best]
---
# statements at module level
print("hello")   # error: 1 [module-level] "only imports, constants, TypedDicts and functions are allowed at module level"
for x in [1]:  # error: 1 [module-level] "only imports, constants, TypedDicts and functions are allowed at module level"
    pass

if True:  # error: 1 [module-level] "only imports, constants, TypedDicts and functions are allowed at module level"
    LIMIT = 1

def t(x: int) -> int:
    """Give."""
    return x

t(1)  # error: 1 [module-level] "only imports, constants, TypedDicts and functions are allowed at module level"
---
# the guard of a script, if __name__
def t(x: int) -> int:
    """Give."""
    return x

if __name__ == "__main__":  # error: 1 [module-level] "a source is not a script"
    print(t(1))
---
# constants that call tools, helpers or print
def _f() -> int:
    return 1

A = tools.read_file(path="a")  # error: 5 [module-level] "a constant can't use 'tools': constants are computed without any effect"
B = _f()  # error: 5 [module-level] "a constant can't use '_f': constants are computed without any effect"
C = [print(x) for x in [1]]  # error: 6 [module-level] "a constant can't use 'print': constants are computed without any effect"
D = E = 1
F, G = 1, 2
H: int
# error: 1 [module-level] "a constant needs a value"
D["a"] = 1  # error: 1 [module-level] "a module-level assignment takes plain names only"

def t(x: int) -> int:
    """Give."""
    return x
---
# a module's docstring
"""What this is about."""

def t(x: int) -> int:
    """Give."""
    return x
---
# Python's compiler refuses a walrus over a comprehension variable
def t(xs: list) -> Any:
    """Read."""
    return [x := 1 for x in xs]  # error: 13 [syntax] "Python refuses this: assignment expression cannot rebind comprehension iteration variable 'x'"
---
# Python's compiler refuses a walrus in the iterable of a comprehension
def t(xs: list) -> Any:
    """Read."""
    return [y for x in xs for y in (z := x)]  # error: 37 [syntax] "Python refuses this: assignment expression cannot be used in a comprehension iterable expression"
---
# Python's compiler refuses a mapping pattern with a key twice
def t(d: dict) -> Any:
    """Read."""
    match d:
        case {"a": 1, "a": 2}:  # error: 14 [syntax] "Python refuses this: mapping pattern checks duplicate key ('a')"
            return 1
    return 2
---
# Python's compiler refuses a lambda with a parameter twice
def t(xs: list) -> Any:
    """Read."""
    return sorted(xs, key=lambda x, x: 1)  # error: 37 [syntax] "Python refuses this: duplicate argument 'x' in function definition"
