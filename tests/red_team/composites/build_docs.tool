def build_docs() -> str:
    """Build the documentation with make, and return the output."""
    return tools.run_program(argv=["make", "docs"], env=["LANG=C"])["output"]
