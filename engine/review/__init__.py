"""What a person sees of a version before approving it."""
