"""Markdown as widgets, one for each block; nothing a text says is ever fetched."""
