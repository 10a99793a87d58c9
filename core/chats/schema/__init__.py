"""The numbered steps of the database's layout. One that was released never changes."""
