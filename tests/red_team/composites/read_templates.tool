def read_templates() -> list[str]:
    """Return the texts of the templates in the folder templates."""
    rows = [{"path": "templates/mail.txt"}, {"path": "templates/letter.txt"}]
    return [tools.read_file(path=row["path"]) for row in rows]
