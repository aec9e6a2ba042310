# a name with letters outside ASCII
def t() -> int:
    """Count."""
    größe = 1  # error: 5 [non-ascii-name] "the name 'größe' has letters outside ASCII"
    return größe  # error: 12 [non-ascii-name] "the name 'größe' has letters outside ASCII"
---
# a name that NFKC turns into a name with two underscores
def t(x: int) -> int:
    """Count."""
    return x.__clᵃss__  # error: 14 [non-ascii-name] "the name '__clᵃss__' has letters outside ASCII"
---
# a Cyrillic letter that looks Latin
def t(path: str) -> int:
    """Count."""
    return len(рath)  # error: 16 [non-ascii-name] "the name 'рath' has letters outside ASCII"
---
# full-width letters
def t(path: str) -> str:
    """Read."""
    return ｔools.read_file(path=path)  # error: 12 [non-ascii-name] "the name 'ｔools' has letters outside ASCII"
---
# strings and comments may contain any script
def t() -> str:
    """Grüße — 你好."""
    return "naïve ✓ 🙂"  # café
---
# a direction override in a string
def t(role: str) -> bool:
    """Check."""
    return role == "user<U+202E>"  # error: 25 [bad-character] "the invisible or direction-changing character U+202E is not allowed in a source"
---
# a direction override in a comment
def t(role: str) -> bool:
    """Check."""
    return role == "user"  # <U+2066>admin
# error: 30 [bad-character] "the invisible or direction-changing character U+2066 is not allowed in a source"
---
# a zero-width space
def t(role: str) -> bool:
    """Check."""
    return ro<U+200B>le == "user"  # error: 14 [bad-character] "the invisible or direction-changing character U+200B is not allowed in a source"
---
# a NUL and an escape character
def t() -> str:
    """Check."""
    return "<U+0000><U+001B>[31m"
# error: 13 [bad-character] "the control character U+0000 is not allowed in a source"
# error: 14 [bad-character] "the control character U+001B is not allowed in a source"
---
# the same characters written as escapes
def t() -> str:
    """Check."""
    return "\x00\x1b[31m\u202e\u200b"
---
# a no-break space between tokens
def t(x: int) -> int:
    """Check."""
    return x<U+00A0>+ 1  # error: 13 [syntax] "invalid non-printable character U+00A0"
---
# typographic quotes
def t() -> str:
    """Check."""
    return “text”  # error: 12 [syntax] "invalid character '“' (U+201C)"
---
# a dash for a minus
def t(x: int) -> int:
    """Check."""
    return x – 1  # error: 14 [syntax] "invalid character '–' (U+2013)"
