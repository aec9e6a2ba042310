"""Shell commands, judged before they run: read strictly, compared with an allow-list, explained by a table of dangers."""
