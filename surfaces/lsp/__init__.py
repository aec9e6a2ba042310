"""A language server for sources of tools: findings, fixes, descriptions and completion in an editor."""
