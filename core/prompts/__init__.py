"""From a conversation to a prompt, and from a model's text back to what it means."""
