# numbers in every form
def t() -> list:
    """List."""
    return [0, 00, 1_000, 0xFF, 0o17, 0b1_0, 1., .5, 1e3, 1.5E-3, 1_0.0_1, -0.0]
---
# a leading zero
def t() -> int:
    """Give."""
    return 012  # error: 12 [syntax] "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers"
---
# a number directly before a name
def t() -> int:
    """Give."""
    return 1abc  # error: 12 [syntax] "invalid decimal literal"
---
# a method of a number without brackets
def t() -> str:
    """Give."""
    return 0.upper()  # error: 13 [syntax] "Python refuses this: invalid decimal literal"
# hint: "put the number into brackets: (0)"
---
# an underscore at the end of a number
def t() -> int:
    """Give."""
    return 1_  # error: 13 [syntax] "invalid decimal literal"
---
# a number with too many digits
def t() -> int:
    """Give."""
    return 111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111
# error: 12 [literal-too-long] "a number of 129 characters; at most 128 are allowed"
---
# strings in every form
def t() -> list:
    """List."""
    a = r"\d+" R'\s' u"x" '\x41\u0042\N{BULLET}\101\
b'
    b = b"\xff" rb'\d' Br"x"
    return [a, b.hex(), '''one
two''', """three"""]
---
# a string that is not closed
def t() -> str:
    """Give."""
    return "abc
# error: 12 [unterminated-string] "this string is not closed; its closing " is missing"
---
# a long string that is not closed
def t() -> str:
    """Give."""
    return """abc
# error: 12 [unterminated-string] "this string is not closed; its closing """ is missing"
---
# a string over two lines
def t() -> str:
    """Give."""
    x = 'one
# error: 9 [unterminated-string] "this string is not closed; its closing ' is missing"
    two'
# error: 8 [unterminated-string] "this string is not closed; its closing ' is missing"
    return x
---
# a malformed escape
def t() -> str:
    """Give."""
    return "\x4"
# error: 12 [syntax] "a malformed string: (unicode error) 'unicodeescape' codec can't decode bytes in position 0-2: truncated \xXX escape"
---
# bytes contain ASCII only
def t() -> str:
    """Give."""
    return b"é".hex()  # error: 12 [syntax] "a malformed string: bytes can only contain ASCII literal characters"
---
# bytes next to text
def t() -> str:
    """Give."""
    return "a" b"b"  # error: 12 [syntax] "bytes and text can't be written side by side"
---
# f-strings in every form
def t(x: float, w: int, d: dict) -> list:
    """List."""
    return [f"{x}", f"{x!r:>10}", f"{x:{w}.{w}f}", f"{{}}", f"{d['a']}", f'''{
        x + 1}''', rf"\d{x}", f"{x,}", f"{(lambda: 1) if w else x}"]
# error: 44 [lambda-value] "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
---
# an f-string inside an f-string's braces
def t(xs: list) -> str:
    """Join."""
    return f"({', '.join(f'{x:>3}' for x in xs)})"
---
# an empty field
def t(x: int) -> str:
    """Show."""
    return f"{}"  # error: 14 [syntax] "an empty {} in an f-string"
---
# a field that is not closed
def t(x: int) -> str:
    """Show."""
    return f"{x"  # error: 14 [syntax] "'{' is not closed in this f-string"
---
# a single closing brace
def t(x: int) -> str:
    """Show."""
    return f"x}"  # error: 15 [syntax] "a single '}' in an f-string"
---
# the debugging form
def t(x: int) -> str:
    """Show."""
    return f"{x=}" + f"{ x + 1 = !s:>9}"
---
# an assignment inside the braces
def t(x: int) -> str:
    """Show."""
    return f"{x=5}"  # error: 16 [syntax] "'=' inside the braces of an f-string"
---
# a debugging form that is not closed
def t(x: int) -> str:
    """Show."""
    return f"{x=" + f"{x!r=}"  # error: 16 [syntax] "'=' inside the braces of an f-string"
---
# a debugging form inside a format spec
def t(x: int) -> str:
    """Show."""
    return f"{x:{x=}}"  # error: 19 [syntax] "'=' inside a format spec"
---
# a debugging form without an expression
def t(x: int) -> str:
    """Show."""
    return f"{=}"  # error: 14 [syntax] "an empty {} in an f-string"
---
# a backslash inside the braces
def t(xs: list) -> str:
    """Show."""
    return f"{'\n'.join(xs)}"  # error: 15 [syntax] "a backslash inside the braces of an f-string"
---
# the same quotes inside the braces
def t(d: dict) -> str:
    """Show."""
    return f"{d["a"]}"  # error: 17 [syntax] "the " inside the braces ends this f-string"
---
# an unknown conversion
def t(x: int) -> str:
    """Show."""
    return f"{x!z}"  # error: 16 [syntax] "only r, s or a can follow '!'"
---
# a comparison and a walrus in a field
def t(x: int) -> str:
    """Show."""
    return f"{x != 1} {x == 2} {(y := x)} {y:=^9}"
---
# a lambda or a statement in a field
def t(x: int) -> str:
    """Show."""
    return f"{return x}"  # error: 15 [syntax] "the braces of this f-string do not hold an expression"
---
# an f-string as a docstring
def t(x: int) -> int:  # error: 5 [no-docstring] "the tool 't' has no docstring"
    f"""Show."""
    return x
---
# bytes with an f
def t(x: int) -> str:
    """Show."""
    return fb"{x}"  # error: 14 [syntax] "'"{x}"' is not allowed here"
