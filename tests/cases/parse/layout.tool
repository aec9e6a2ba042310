# a source without a function
# error: 1 [no-tool] "the source has no public function, so it defines no tool"
---
# a block is missing after the colon
def t(x: int) -> int:
    """Check."""
    if x:
    return 1  # error: 5 [syntax] "expected an indented block after 'if' statement on line 7"
---
# a line that is indented too far
def t(x: int) -> int:
    """Check."""
    y = x
        z = y  # error: 8 [syntax] "unexpected indent"
    return y
---
# a line whose indentation matches no block
def t(x: int) -> int:
    """Check."""
    if x:
        y = 1
      return y  # error: 15 [syntax] "unindent does not match any outer indentation level"
---
# a missing colon
def t(x: int) -> int:
    """Check."""
    if x  # error: 9 [syntax] "expected ':'"
        return 1
    return 2
---
# a bracket that is never closed
def t(x: int) -> list:
    """Check."""
    return [x, 1  # error: 12 [syntax] "'[' was never closed"
---
# a bracket closed by another
def t(x: int) -> list:
    """Check."""
    return [x, 1)  # error: 17 [syntax] "closing parenthesis ')' does not match opening parenthesis '['"
---
# a bracket closed twice
def t(x: int) -> list:
    """Check."""
    return [x]]  # error: 15 [syntax] "unmatched ']'"
---
# tabs
def t(x: int) -> int:
    """Check."""
    if x:
<U+0009><U+0009>return 1  # error: 1 [tab] "a tab is used outside a string"  # error: 2 [tab] "a tab is used outside a string"
    return 2
---
# lines continue inside brackets and after a backslash
def t(
    x: int,
    y: int,
) -> int:
    """Add."""
    total = x + \
        y
    return (
        total
  + 1)
---
# several statements on a line, and comments anywhere
def t(x: int) -> int:  # the tool
    """Add."""; y = x  # after a semicolon
        # a comment's indentation means nothing
    if y: y += 1; y += 1
    else: pass
    return y  # done
---
# a function without a body
def t(x: int) -> int:  # error: 22 [syntax] "expected an indented block after function definition on line 74"
---
# else without if
def t(x: int) -> int:
    """Check."""
    else:  # error: 5 [syntax] "'else' is not allowed here"
        return x
---
# return at module level
def t(x: int) -> int:
    """Check."""
    return x

return 1  # error: 1 [module-level] "'return' is outside a function"
---
# an assignment instead of a comparison
def t(x: int) -> int:
    """Check."""
    if x = 1:  # error: 8 [syntax] "invalid syntax. Maybe you meant '==' or ':=' instead of '='?"
        return 1
    return 2
---
# a keyword as a name
def t(class: str) -> str:  # error: 7 [syntax] "'class' is a keyword, so it can't be a name"
    """Check."""
    return class
---
# assignment to a call
def t(d: dict) -> dict:
    """Set."""
    d.get("a") = 1  # error: 5 [syntax] "a call can't be assigned to"
    return d
---
# assignment to two starred names
def t(xs: list) -> list:
    """Split."""
    *a, *b = xs  # error: 5 [syntax] "two starred names in one assignment"
    return a
---
# a positional argument after a named one
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path=path, "utf-8")  # error: 39 [syntax] "a positional argument follows a named one"
---
# an argument given twice
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path=path, path=path)  # error: 39 [syntax] "the argument 'path' is given twice"
---
# a parameter without a default after one with a default
def t(a: int = 1, b: int) -> int:  # error: 19 [syntax] "a parameter without a default follows one with a default"
    """Add."""
    return a + b
---
# i++ of other languages
def t(i: int) -> int:
    """Count."""
    i++  # error: 8 [syntax] "something is missing here"
    return i
---
# the question mark of other languages
def t(a: int) -> int:
    """Choose."""
    return a ? 1 : 2  # error: 14 [syntax] "'?' is not allowed here"
---
# the arrow of other languages
def t(xs: list) -> list:
    """Choose."""
    return xs.map(x => x + 1)  # error: 22 [syntax] "'>' is not allowed here"
---
# braces for blocks
def t(x: int) -> int {  # error: 22 [syntax] "expected ':'"
    return x
}
---
# match and case are names elsewhere
def t(match: str, case: list) -> str:
    """Find."""
    case[0] = match
    type = match
    return type
---
# a case outside match
def t(x: int) -> int:
    """Choose."""
    case 1:  # error: 10 [syntax] "'1' is not allowed here"
        return 1
---
# match without case
def t(x: int) -> int:
    """Choose."""
    match x:
        1: return 2  # error: 9 [syntax] "'1' is not allowed here"
---
# walrus at the top of a statement
def t(x: int) -> int:
    """Choose."""
    y := x  # error: 7 [syntax] "':=' is not allowed here"
    return y
---
# an else if of other languages
def t(x: int) -> int:
    """Choose."""
    if x:
        return 1
    else if x:  # error: 10 [syntax] "expected ':'"
        return 2
---
# two ampersands
def t(x: int) -> int:
    """Choose."""
    if x && x:  # error: 11 [syntax] "'&' is not allowed here"
        return 1
    return 2
---
# an exclamation mark for not
def t(x: int) -> int:
    """Choose."""
    return 1 if !x else 2  # error: 17 [syntax] "'!' is not allowed here"
---
# a declaration with let
def t(x: int) -> int:
    """Choose."""
    let y = x  # error: 9 [syntax] "'y' is not allowed here"
    return y
---
# a missing comma between strings joins them
def t() -> list:
    """List."""
    return ["a" "b", "c"]
---
# a missing comma between names
def t(a: int, b: int) -> list:
    """List."""
    return [a b]  # error: 13 [syntax] "invalid syntax. Perhaps you forgot a comma?"
