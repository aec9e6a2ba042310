# a source without a public function
def _f(x: int) -> int:  # error: 5 [no-tool] "the source has no public function, so it defines no tool"
    return x
---
# two public functions
def t(x: int) -> int:
    """Add."""
    return helper(x)

def helper(x: int) -> int:  # error: 5 [second-tool] "'helper' is a second public function; 't' is the tool already"
    return x + 1
---
# a missing docstring
def t(x: int) -> int:  # error: 5 [no-docstring] "the tool 't' has no docstring"
    return x
---
# a missing docstring on one line
def t(x: int) -> int: return x  # error: 5 [no-docstring] "the tool 't' has no docstring"
---
# an empty docstring
def t(x: int) -> int:  # error: 5 [no-docstring] "the tool 't' has no docstring"
    """ """
    return x
---
# a docstring that describes an unknown parameter
def t(path: str) -> str:  # warning: 5 [docstring-argument] "the docstring describes 'mode', which is not a parameter"
    """Read.

    Args:
        path: The file.
        mode: How.
    """
    return path
---
# a complete docstring
def t(path: str, limit: int = 10) -> dict:
    """Read the start of a file.

    More words.

    Args:
        path: The file, which may
            be anywhere.
        limit (int): How many lines.

    Returns:
        A dict.

    Raises:
        ToolError: It isn't there.
    """
    return {"lines": tools.read_file(path=path).splitlines()[:limit]}
---
# a function defined twice
def _f(x: int) -> int:
    return x

def _f(x: int) -> int:  # error: 5 [duplicate] "'_f' is defined twice"
    return x + 1

def t(x: int) -> int:
    """Add."""
    return _f(x)
---
# a parameter defined twice
def t(x: int, x: int) -> int:  # error: 15 [duplicate] "the parameter 'x' is defined twice"
    """Add."""
    return x
---
# a class inside a function
def t(xs: list) -> list:
    """Sort."""
    class Row(TypedDict):  # error: 11 [nested-class] "a TypedDict must be at module level"
        name: str
    return xs
---
# mutable defaults
def t(xs: list = [], d: dict = {}, s: Any = set(), n: int = 1 + 1, o: Any = dict(a=1)) -> list:
# error: 18 [mutable-default] "the default of 'xs' must be a literal: a number, a string, True, False, None or a tuple of these"
# error: 32 [mutable-default] "the default of 'd' must be a literal: a number, a string, True, False, None or a tuple of these"
# error: 45 [mutable-default] "the default of 's' must be a literal: a number, a string, True, False, None or a tuple of these"
# error: 61 [mutable-default] "the default of 'n' must be a literal: a number, a string, True, False, None or a tuple of these"
# error: 77 [mutable-default] "the default of 'o' must be a literal: a number, a string, True, False, None or a tuple of these"
    """Default."""
    return xs
---
# immutable defaults
def t(a: int = -1, b: str = "x" "y", c: Any = None, d: bool = True, e: tuple = (1, ("a", None)), f: float = +1.5) -> list:
    """Default."""
    return [a, b, c, d, e, f]
---
# signs belong to numbers, in defaults and in examples; keys are not lists
@example(arguments={"a": -None})  # error: 20 [decorator] "@example takes constants only"
@example(arguments={"a": {[1]: 2}})  # error: 20 [decorator] "@example takes constants only"
def t(a: Any = -True) -> Any:
# error: 16 [mutable-default] "the default of 'a' must be a literal: a number, a string, True, False, None or a tuple of these"
    """Default."""
    return a
---
# a default that is a constant of the module
LIMIT = 10

def t(n: int = LIMIT) -> int:
# error: 16 [mutable-default] "the default of 'n' must be a literal: a number, a string, True, False, None or a tuple of these"
    """Default."""
    return n
---
# a function's default that is a variable of the function around it
def t(n: int) -> int:
    """Default."""
    add = lambda x, n=n: x + n
# error: 23 [mutable-default] "the default of 'n' must be a literal: a number, a string, True, False, None or a tuple of these"
# hint: "leave the parameter out, and read n of the function around; or give it in each call"
    return add(1)
---
# a lambda's default
def t(xs: list) -> list:
    """Default."""
    return sorted(xs, key=lambda x, n=[]: x)
# error: 39 [mutable-default] "the default of 'n' must be a literal: a number, a string, True, False, None or a tuple of these"
---
# keyword-only parameters
def t(a: int, *, b: int = 1, c: int) -> int:
    """Add."""
    return a + b + c
---
# all decorators with all arguments
@tool(timeout=60)
@example(
    arguments={"path": "notes.txt", "n": -1},
    files={"notes.txt": "a cat"},
    expect_files={"notes.txt": "a dog"},
    result=[1, None, (True, 2.5)],
)
@example(arguments={"path": "b", "n": 1}, raises="not_found", stubs={"http_request": {"status": 200}})
def t(path: str, n: int = 1) -> list:
    """Read."""
    return [path, n]
---
# a bare @tool
@tool
def t(path: str) -> str:
    """Read."""
    return path
---
# unknown decorators
@cache  # error: 2 [decorator] "the decorators are @tool(…) and @example(…)"
@functools.lru_cache(maxsize=None)  # error: 2 [decorator] "the decorators are @tool(…) and @example(…)"
@staticmethod  # error: 2 [decorator] "the decorators are @tool(…) and @example(…)"
def t(path: str) -> str:
    """Read."""
    return path
---
# decorators above a helper
@tool  # error: 2 [decorator] "@tool belongs to the tool, not to a helper"
def _f(path: str) -> str:
    return path

def t(path: str) -> str:
    """Read."""
    return _f(path)
---
# @tool twice, @example without arguments
@tool(timeout=1)
@tool(timeout=2)  # error: 2 [decorator] "@tool is written twice"
@example  # error: 2 [decorator] "@example needs arguments"
@example(arguments={"path": "a"})
def t(path: str) -> str:
    """Read."""
    return path
---
# arguments of decorators
@tool(60)  # error: 7 [decorator] "@tool takes named arguments"
@tool(name="x")  # error: 2 [decorator] "@tool is written twice"  # error: 7 [decorator] "@tool has no argument 'name'"
@example({"path": "a"})  # error: 10 [decorator] "@example takes named arguments"
@example(argument={"path": "a"}, arguments={"path": str(1)})
# error: 10 [decorator] "@example has no argument 'argument'; did you mean 'arguments'?"
# error: 44 [decorator] "@example takes constants only"
def t(path: str) -> str:
    """Read."""
    return path
---
# the timeout is a number within bounds
@tool(timeout=0)  # error: 15 [decorator] "timeout is a number of seconds, above 0 and at most 3600"
def t(path: str) -> str:
    """Read."""
    return path
---
# the timeout is not text, a boolean or more than an hour
@tool(timeout="60")  # error: 15 [decorator] "timeout is a number of seconds, above 0 and at most 3600"
@example(arguments={"path": "a"})
def t(path: str) -> str:
    """Read."""
    return path
---
# an example with unknown arguments
@example(arguments={"pth": "a"})  # error: 21 [decorator] "t has no parameter 'pth'; did you mean 'path'?"
def t(path: str) -> str:
    """Read."""
    return path
---
# an example whose arguments are not an object
@example(arguments=["a"], files="x")
# error: 20 [decorator] "arguments takes an object with names as keys"
# error: 33 [decorator] "files takes an object with names as keys"
def t(path: str) -> str:
    """Read."""
    return path
---
# an example whose keys are not strings
@example(arguments={1: "a"})  # error: 20 [decorator] "arguments takes an object with names as keys"
def t(path: str) -> str:
    """Read."""
    return path
---
# an example without a required argument
@example(arguments={"path": "a"})  # error: 20 [decorator] "t needs 'n'"
@example(arguments={"path": "a", "n": 2}, raises=3, expect_files={"a": 1})
# error: 50 [decorator] "raises takes an error's code"
# error: 66 [decorator] "expect_files takes an object with names as keys"
def t(path: str, n: int, deep: bool = False) -> str:
    """Read."""
    return path
---
# an example of a tool without parameters
@example(result=1)
@example(arguments={})
def t() -> int:
    """Give."""
    return 1
---
# a name that is too long
def aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(path: str) -> str:  # error: 5 [tool-name] "a tool's name has at most 128 characters"
    """Read."""
    return path
---
# a definition has only values that can leave a program
def t(most: float = 1e999) -> float:  # error: 5 [definition-text] "the tool's definition contains the float inf, which can't leave a program"
    """Give."""
    return most
---
# a default of bytes
def t(text: Any = b"a") -> str:  # error: 5 [definition-text] "the tool's definition contains bytes, which can't leave a program"
    """Give."""
    return str(text)
---
# a choice beyond 64 bits
def t(key: Literal[18446744073709551616]) -> int:  # error: 5 [definition-text] "the tool's definition contains an int beyond 64 bits, which can't leave a program"
    """Give."""
    return key
---
# a choice with half of a surrogate pair
def t(key: Literal["\ud800"]) -> int:  # error: 5 [definition-text] "the tool's definition contains half of a surrogate pair, which can't leave a program"
    """Give."""
    return 1
---
# a helper's defaults, and a result that is inferred, may be values that can't leave a program
def t(deep: bool):
    """Give."""
    if deep:
        return {"\ud800": _least([1])}
    return None

def _least(numbers: list[int], most: float = 1e999) -> float:
    """Find the least."""
    return min([most, *numbers])
