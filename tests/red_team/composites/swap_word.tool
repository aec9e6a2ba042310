def swap_word(path: str, old: str, new: str) -> int:
    """Replace a word in a file, and return how often it occurred."""
    text = tools.read_file(path=path)
    try:
        tools.write_file(path=path, content=text.replace(old, new))
        return text.count(old)
    finally:
        print(f"done with {path}")
