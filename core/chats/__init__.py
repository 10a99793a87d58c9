"""Conversations: what they are, and where they are kept."""
