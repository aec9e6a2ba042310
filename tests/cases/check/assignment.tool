# assigned in one branch only
def t(x: int) -> int:
    """Choose."""
    if x:
        y = 1
    return y  # warning: 12 [unassigned] "'y' may not have a value here"
---
# assigned in both branches
def t(x: int) -> int:
    """Choose."""
    if x > 1:
        y = 1
    elif x:
        y = 2
    else:
        y = 3
    return y
---
# assigned in one branch, and the other branch returns
def t(x: int) -> int:
    """Choose."""
    if x > 1:
        y = 1
    elif x:
        return 0
    else:
        raise ToolError("no")
    return y
---
# assigned in a loop whose body may never run
def t(xs: list) -> int:
    """Last."""
    for x in xs:
        y = x
    return y  # warning: 12 [unassigned] "'y' may not have a value here"
---
# the loop variable may have no value after the loop
def t(xs: list) -> int:
    """Last."""
    for x in xs:
        pass
    return x  # warning: 12 [unassigned] "'x' may not have a value here"
---
# assigned before the loop
def t(xs: list) -> int:
    """Last."""
    y = 0
    for x in xs:
        y = x
    return y
---
# assigned in the else of a loop without break
def t(xs: list) -> int:
    """First."""
    for x in xs:
        if x:
            found = x
            break
    else:
        found = 0
    return found
---
# assigned in the loop and in its else
def t(xs: list) -> int:
    """First."""
    for x in xs:
        if x:
            break
    else:
        found = 0
    return found  # warning: 12 [unassigned] "'found' may not have a value here"
---
# a break before the assignment
def t(xs: list) -> int:
    """First."""
    for x in xs:
        if x:
            break
        y = x
    else:
        y = 1
    return y  # warning: 12 [unassigned] "'y' may not have a value here"
---
# try: the body may stop before the assignment
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    except ToolError:
        print("no")
    return text  # warning: 12 [unassigned] "'text' may not have a value here"
---
# try: assigned in the body, and the handler returns
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    except ToolError as e:
        raise ToolError(f"{e.code}")
    return text
---
# try: the handler assigns too
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    except ToolError:
        text = ""
    return text
---
# try: a name of the body has a value in the else
def t(path: str) -> int:
    """Read."""
    try:
        text = tools.read_file(path=path)
    except ToolError:
        return 0
    else:
        n = len(text)
    return n
---
# try: the last name of the body has no value in the handler
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    except ToolError:
        return text  # error: 16 [unassigned] "'text' has no value here"
    return text
---
# try: a name of the body may have no value in finally
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    finally:
        print(text)  # warning: 15 [unassigned] "'text' may not have a value here"
    return text
---
# assigned in finally
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
    finally:
        done = True
    return f"{text} {done}"
---
# the exception's name has no value after its handler
def t(path: str) -> str:
    """Read."""
    e = ""
    try:
        tools.read_file(path=path)
    except ToolError as e:
        print(e.code)
    return e  # warning: 12 [unassigned] "'e' may have no value here: Python removes an exception's name when its handler ends"
---
# del of a name is refused, so every assigned name keeps a value
def t(x: int) -> int:
    """Delete."""
    y = x
    del y  # error: 9 [delete] "del removes items only"
    return y
---
# match with a final case that matches everything
def t(x: Any) -> str:
    """Name."""
    match x:
        case str():
            kind = "text"
        case _:
            kind = "other"
    return kind
---
# match without a final case that matches everything
def t(x: Any) -> str:
    """Name."""
    match x:
        case str():
            kind = "text"
        case int():
            kind = "number"
    return kind  # warning: 12 [unassigned] "'kind' may not have a value here"
---
# captures of a pattern
def t(x: Any) -> list:
    """Name."""
    match x:
        case [a, *rest]:
            return [a, rest]
        case {"k": a, **others} if others:
            return [a, others]
        case (str() | int()) as a:
            return [a]
    return [a]  # warning: 13 [unassigned] "'a' may not have a value here"
---
# a walrus in the guard of a case
def t(x: Any) -> list:
    """Name."""
    match x:
        case y if (z := len(str(y))) > 3:
            return [y, z]
        case _:
            return [z]
---
# a walrus in the guard of a case that may not match
def t(x: Any) -> list:
    """Name."""
    match x:
        case str() as y if (z := len(y)) > 3:
            return [y, z]
        case _:
            return [z]  # warning: 21 [unassigned] "'z' may not have a value here"
---
# a walrus in a condition
def t(d: dict) -> int:
    """Get."""
    if (n := d.get("n")) and n > 1:
        return n
    return n
---
# a walrus after and
def t(d: dict) -> int:
    """Get."""
    if d and (n := d.get("n")):
        return n
    return n  # warning: 12 [unassigned] "'n' may not have a value here"
---
# a walrus after or
def t(d: dict) -> int:
    """Get."""
    if not d or (n := d.get("n")):
        return 0
    return n
---
# a walrus in a conditional expression
def t(d: dict) -> list:
    """Get."""
    a = (n := 1) if d else 2
    return [a, n]  # warning: 16 [unassigned] "'n' may not have a value here"
---
# a walrus in a comprehension may never run
def t(xs: list) -> list:
    """Get."""
    ys = [y := x for x in xs]
    return [ys, y]  # warning: 17 [unassigned] "'y' may not have a value here"
---
# a walrus in the test of a comprehension, used in its element
def t(xs: list) -> list:
    """Get."""
    return [y for x in xs if (y := x + 1)]
---
# a walrus in a chained comparison may never run
def t(a: int) -> list:
    """Get."""
    b = 0 < a < (n := 5)
    return [b, n]  # warning: 16 [unassigned] "'n' may not have a value here"
---
# used before it is assigned
def t() -> int:
    """Get."""
    print(total)  # error: 11 [unassigned] "'total' has no value here"
    total = 1
    return total
---
# augmented before it is assigned
def t(xs: list) -> int:
    """Get."""
    for x in xs:
        total += x  # error: 9 [unassigned] "'total' has no value here"
    return total
---
# a constant of the module becomes local when it is assigned
LIMIT = 3

def t(x: int) -> int:
    """Get."""
    if x:
        LIMIT = x
    return LIMIT  # warning: 12 [unassigned] "'LIMIT' is assigned in this function, so here it is a local variable, not the constant"
---
# augmenting a module-level constant
COUNT = 0

def t(x: int) -> int:
    """Get."""
    COUNT += x  # error: 5 [unassigned] "'COUNT' is assigned in this function, so here it is a local variable, not the constant"
    return COUNT
---
# an annotation alone assigns nothing
def t(x: int) -> int:
    """Get."""
    y: int
    return y  # error: 12 [unassigned] "'y' has no value here"
---
# a path ends at assert False
def t(d: dict) -> int:
    """Get."""
    assert (n := d.get("n")) is not None, "n is missing"
    return n
---
# in a nested loop with continue
def t(rows: list) -> list:
    """Get."""
    out = []
    for row in rows:
        if not row:
            continue
        head = row[0]
        out.append(head)
    return out
---
# code after return, raise, break and continue
def t(xs: list) -> int:
    """Get."""
    for x in xs:
        if x == 1:
            continue
            print("a")  # warning: 13 [unreachable] "this can't be reached"
        if x == 2:
            break
            print("b")  # warning: 13 [unreachable] "this can't be reached"
        raise ValueError("c")
        print("c")  # warning: 9 [unreachable] "this can't be reached"
    return 1
    print("d")  # warning: 5 [unreachable] "this can't be reached"
    print("e")
---
# code after an if whose branches all leave
def t(x: int) -> int:
    """Get."""
    if x:
        return 1
    else:
        raise ToolError("x")
    return 2  # warning: 5 [unreachable] "this can't be reached"
---
# code after a try whose parts all leave
def t(path: str) -> str:
    """Get."""
    try:
        return tools.read_file(path=path)
    except ToolError:
        return ""
    return "x"  # warning: 5 [unreachable] "this can't be reached"
---
# code after a match whose cases all return
def t(x: Any) -> int:
    """Get."""
    match x:
        case 1:
            return 1
        case y:
            return y
    return 2  # warning: 5 [unreachable] "this can't be reached"
---
# a bounded loop that returns, with the value after it
def t(n: int) -> int:
    """Get."""
    for _ in range(1000):
        n = n // 2
        if n <= 1:
            return n
    raise ToolError("too many steps")
---
# a try in a loop with continue in the handler
def t(paths: list[str]) -> list:
    """Get."""
    out = []
    for path in paths:
        try:
            text = tools.read_file(path=path)
        except ToolError:
            continue
        out.append(text)
    return out
---
# a retry loop
def t(url: str) -> str:
    """Get."""
    for attempt in range(3):
        try:
            answer = tools.http_request(url=url)
            break
        except ToolError as error:
            if not error.retryable:
                raise
            tools.sleep(seconds=2 ** attempt)
    else:
        raise ToolError(f"no answer from {url}")
    return answer["body"]
---
# a deeper path through try and finally inside a loop
def t(xs: list) -> list:
    """Get."""
    out = []
    for x in xs:
        try:
            y = 10 // x
        except ZeroDivisionError:
            y = 0
        finally:
            out.append(x)
        out.append(y)
    return out
---
# try: an earlier name of the body may have a value in the handler
def t(path: str) -> str:
    """Read."""
    try:
        text = tools.read_file(path=path)
        tools.read_file(path=text)
    except ToolError:
        return text  # warning: 16 [unassigned] "'text' may not have a value here"
    return text
---
# assigned in the other branch only, and assigned before a return
def t(x: int) -> int:
    """Choose."""
    if x == 1:
        y = 1
    else:
        print(y)  # error: 15 [unassigned] "'y' has no value here"
    if x == 2:
        z = 1
        return z
    return z  # error: 12 [unassigned] "'z' has no value here"
---
# assigned at the end of an earlier round
def t(xs: list) -> list:
    """Pairs of neighbours."""
    out = []
    for i, x in enumerate(xs):
        if i:
            out.append([before, x])  # warning: 25 [unassigned] "'before' may not have a value here"
        before = x
    return out
---
# an exception's name after its handler, when nothing else assigns it
def t(path: str) -> str:
    """Read."""
    try:
        tools.read_file(path=path)
    except ToolError as e:
        print(e.code)
    return str(e)  # error: 16 [unassigned] "'e' has no value here: Python removes an exception's name when its handler ends"
---
# a read that may fail, and later a read that certainly fails
def t(x: int) -> None:
    """Choose."""
    if x:
        try:
            print(1)
        except ValueError as e:
            print(e)
        print(e)  # error: 15 [unassigned] "'e' has no value here: Python removes an exception's name when its handler ends"
---
# calls side by side read only names that certainly have a value: Python's error would be another one
def t(x: str) -> Any:
    """Read."""
    if x:
        path = x
    return parallel(tools.read_file(path=path), 1)  # error: 42 [unassigned] "'path' has no value here"
---
# calls side by side in a form that parallel does not have
def t(x: str) -> Any:
    """Read."""
    if x:
        y = x
    return parallel(a=y)
# error: 12 [parallel] "parallel takes one generator expression, or calls side by side"
# error: 23 [unassigned] "'y' has no value here"
---
# a body for each item may read a name that some paths assign
def t(xs: list, x: str) -> Any:
    """Read."""
    if x:
        path = x
    return parallel(tools.read_file(path=path + i) for i in xs)  # warning: 42 [unassigned] "'path' may not have a value here"
