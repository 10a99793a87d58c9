"""Qt item models and delegates for the lists of the app."""
