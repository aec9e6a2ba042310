import re
from collections import Counter


@example(
    arguments={"path": "poem.txt", "top": 2},
    files={"poem.txt": "The sea, the SEA!\nThe ship."},
    result=[{"word": "the", "count": 3}, {"word": "sea", "count": 2}],
)
def word_frequencies(path: str, top: int = 10) -> list[dict]:
    """Count the words of a text file, the most frequent first.

    Args:
        path: The file to read.
        top: The most words to list.
    """
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", tools.read_file(path=path).lower())
    ranked = sorted(Counter(words).items(), key=(lambda pair: (-pair[1], pair[0])))
    return [{"word": word, "count": count} for word, count in ranked[:top]]
