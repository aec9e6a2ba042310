"""The types of a source's expressions, as far as they are certain."""
