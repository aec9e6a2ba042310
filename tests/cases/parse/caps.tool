# brackets nested beyond the limit
def t() -> list:
    """Nest."""
    return [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
# error: 62 [nesting-too-deep] "brackets are nested more than 50 deep"
---
# brackets nested within the parser's limit are refused by the checker
def t() -> list:
    """Nest."""
    return [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
# error: 52 [expression-depth] "an expression is nested more than 40 deep"
---
# operators nested beyond the limit
def t(x: int) -> int:
    """Nest."""
    return - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - x
# error: 544 [nesting-too-deep] "an expression is nested more than 150 levels deep"
---
# blocks nested beyond the limit
def t(x: int) -> int:
    """Nest."""
    if x:
        if x:
            if x:
                if x:
                    if x:
                        if x:
                            if x:
                                if x:
                                    if x:
                                        if x:
                                            if x:
                                                if x:
                                                    if x:
                                                        if x:
                                                            if x:
                                                                if x:
                                                                    if x:
                                                                        if x:
                                                                            if x:
                                                                                if x:
                                                                                    if x:
                                                                                        if x:
                                                                                            if x:
                                                                                                if x:
                                                                                                    if x:
                                                                                                        if x:
                                                                                                            if x:
                                                                                                                if x:
                                                                                                                    if x:
                                                                                                                        if x:
                                                                                                                            if x:
                                                                                                                                if x:
                                                                                                                                    if x:
                                                                                                                                        if x:
                                                                                                                                            if x:
                                                                                                                                                if x:
                                                                                                                                                    if x:
                                                                                                                                                        if x:
                                                                                                                                                            if x:
                                                                                                                                                                if x:
                                                                                                                                                                    if x:
# error: 165 [nesting-too-deep] "blocks are nested more than 40 deep"
                                                                                                                                                                        x = 1
    return x
