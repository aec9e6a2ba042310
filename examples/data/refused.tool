import os


def tidy(folder: str, keep: list = []) -> list:
    """Remove the files of a folder, but for a few.

    Args:
        folder: The folder.
        keep: What stays.
    """
    gone = []
    names = os.listdir(folder)
    for name in names:
        if name not in kept:
            tools.delete_file(path=folder + "/" + name)
            gone.append(name)
    return gone
