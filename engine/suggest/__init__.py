"""Finds sequences of calls that sessions repeat, and writes each as the draft of a tool."""
