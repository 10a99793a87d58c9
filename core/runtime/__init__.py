"""What is loaded, by whom and until when; the owner of the workers."""
