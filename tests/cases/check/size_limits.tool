# saved tools nested eight deep are accepted
def t(path: str) -> Any:
    """Go deep."""
    return tools.deep_7(path=path)
---
# saved tools nested nine deep are refused
def t(path: str) -> Any:
    """Go deep."""
    return tools.deep_8(path=path)  # error: 12 [tool-depth] "calling 'deep_8' nests saved tools 9 deep; at most 8 are allowed"
---
# blocks nested eight deep are accepted
def t(x: int) -> int:
    """Nest."""
    if x:
        for a in [1]:
            if a:
                try:
                    for b in [1]:
                        if b:
                            match b:
                                case 1:
                                    if b:
                                        return 1
                except ToolError:
                    pass
    return 2
---
# blocks nested nine deep are refused
def t(x: int) -> int:
    """Nest."""
    if x:
        for a in [1]:
            if a:
                try:
                    for b in [1]:
                        if b:
                            match b:
                                case 1:
                                    if b:
                                        for c in [1]:  # error: 41 [block-depth] "blocks are nested more than 8 deep"
                                            return c
                except ToolError:
                    pass
    return 2
---
# elif does not count as nesting
def t(x: int) -> int:
    """Nest."""
    if x == 1:
        return 1
    elif x == 2:
        return 2
    elif x == 3:
        return 3
    elif x == 4:
        return 4
    elif x == 5:
        return 5
    elif x == 6:
        return 6
    elif x == 7:
        return 7
    elif x == 8:
        return 8
    elif x == 9:
        return 9
    elif x == 10:
        return 10
    return 0
---
# expressions nested forty deep are accepted
def t(x: int) -> int:
    """Nest."""
    return 0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - (0 - x)))))))))))))))))))
---
# expressions nested deeper are refused
def t(x: int) -> int:
    """Nest."""
    return 0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-(0-x))))))))))))))))))))))))))))))))))))))))
# error: 129 [expression-depth] "an expression is nested more than 40 deep"
---
# a long chain of additions is deep, join is not
def t(a: str) -> str:
    """Add."""
    return a + "b" + "c" + "d" + "e" + "f" + "g" + "h" + "i" + "j" + "k" + "l" + "m" + "n" + "o" + "p" + "q" + "r" + "s" + "t"
---
# a long list is not deep
def t() -> list:
    """List."""
    return [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43]
