"""Small reusable parts that the pages are built from."""
