def pack_folder(folder: str, packer: str = "zip") -> int:
    """Pack a folder into the file packed.zip, and return the exit code of zip."""
    return tools.run_program(argv=[packer, "-r", "packed.zip", folder])["exit_code"]
