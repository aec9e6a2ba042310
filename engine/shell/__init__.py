"""Shell commands, judged before they run: read as bash reads them, seen through what runs others, compared with patterns."""
