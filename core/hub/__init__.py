"""Models on the Hub: search, what a repository offers, and downloads."""
