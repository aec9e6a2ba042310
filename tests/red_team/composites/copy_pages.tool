def copy_pages() -> int:
    """Copy the pages of the folder pages to the folder site."""
    pages = tools.find_files(pattern="*.html", path="pages")["paths"]
    for page in pages:
        tools.copy_file(source=page, target=f"site/{page.removeprefix('pages/')}", overwrite=True)
    return len(pages)
