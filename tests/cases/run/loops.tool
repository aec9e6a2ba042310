# while with else, break, continue and a walrus
def t(n: int) -> Any:
    """Count."""
    found = []
    while n:
        n -= 1
        if n % 2:
            continue
        found.append(n)
    else:
        found.append("else")
    while (n := n + 1) < 10:
        if n == 4:
            break
    else:
        found.append("never")
    while found and found[-1] != 2:
        found.pop()
    return [found, n]

# arguments: {"n": 5}
# result: [[4, 2], 4]
---
# while in try and finally
def t() -> Any:
    """Count."""
    steps, n = [], 0
    while True:
        n += 1
        try:
            if n == 2:
                continue
            if n == 4:
                break
            steps.append(n)
        finally:
            steps.append("f")
    return steps

# result: [1, "f", "f", 3, "f", "f"]
---
# polling until a call succeeds
def t() -> Any:
    """Wait."""
    tries = 0
    while tries < 3:
        try:
            return tools.read_file(path="a")
        except ToolError:
            tries += 1
    return None

# calls: read_file(path="a") raises not_found "no a"
# calls: read_file(path="a") -> "x"
# result: "x"
---
# a list that shrinks and grows while it is read
def t(xs: list) -> Any:
    """Read."""
    seen = []
    def more(into, x):
        into.append(x)
    for x in xs:
        seen.append(x)
        if x == 1:
            xs.remove(1)
            more(xs, 7)
        if x == 3:
            more(xs, 8)
    return [seen, xs, [y for y in xs if y < 9 and not (y == 7 and more(xs, 9))]]

# arguments: {"xs": [1, 2, 3]}
# result: [[1, 3, 7, 8], [2, 3, 7, 8, 9], [2, 3, 7, 8]]
---
# a loop over what is no container
def t(xs: Any) -> Any:
    """Loop."""
    found = []
    for x in xs:  # raises: TypeError "'int' object is not iterable"
        found.append(x)
        found += xs
    return found

# arguments: {"xs": 3}
---
# a dictionary that grows while it is read
def t(d: dict) -> Any:
    """Loop."""
    for k in d:  # raises: RuntimeError "dictionary changed size during iteration"
        d.update({k + "x": 1})
    return d

# arguments: {"d": {"a": 1}}
