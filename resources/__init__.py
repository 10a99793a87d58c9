"""Icons, theme tokens, translations and model lists that ship with Octavo."""
