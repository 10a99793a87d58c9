"""The desktop app: a Qt client of the Octavo service."""
