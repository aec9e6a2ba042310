"""What a checked program can do, found out without running it."""
