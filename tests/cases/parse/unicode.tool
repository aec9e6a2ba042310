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
# characters that are not printable, or printable and blank
def t() -> str:
    """Check."""
    return "a<U+3164>b<U+0085>c<U+2028>d<U+009B>e<U+00AD>f<U+E000>g<U+FE0F>h<U+200D>i<U+2800>j<U+E0041>k1<U+FE0F>"
# error: 14 [bad-character] "the invisible or direction-changing character U+3164 is not allowed in a source"
# error: 16 [bad-character] "the control character U+0085 is not allowed in a source"
# error: 18 [bad-character] "the invisible or direction-changing character U+2028 is not allowed in a source"
# error: 20 [bad-character] "the control character U+009B is not allowed in a source"
# error: 22 [bad-character] "the invisible or direction-changing character U+00AD is not allowed in a source"
# error: 24 [bad-character] "the invisible or direction-changing character U+E000 is not allowed in a source"
# error: 26 [bad-character] "the invisible or direction-changing character U+FE0F is not allowed in a source"
# error: 28 [bad-character] "the invisible or direction-changing character U+200D is not allowed in a source"
# error: 30 [bad-character] "the invisible or direction-changing character U+2800 is not allowed in a source"
# error: 32 [bad-character] "the invisible or direction-changing character U+E0041 is not allowed in a source"
# hint: "write it as an escape: "\U000e0041""
# error: 35 [bad-character] "the invisible or direction-changing character U+FE0F is not allowed in a source"
---
# emoji may have a form and be joined
def t() -> str:
    """Check ✔<U+FE0F>."""
    return "⚠<U+FE0F> 1<U+FE0F><U+20E3> ℹ<U+FE0F> <U+1F469><U+200D><U+1F4BB> <U+1F469><U+1F3FD><U+200D>❤<U+FE0F><U+200D><U+1F468>\t|"
---
# the same characters written as escapes
def t() -> str:
    """Check."""
    return "\x00\x1b[31m\u202e\u200b"
---
# a no-break space between tokens
def t(x: int) -> int:
    """Check."""
    return x<U+00A0>+ 1  # error: 13 [bad-character] "the invisible or direction-changing character U+00A0 is not allowed in a source"
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
