"""The command line: one file per verb, each imports what it needs only when it runs."""
