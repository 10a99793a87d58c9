"""Colours, fonts, style sheet and icons, all made from the design tokens."""
