"""The native dialect: LM Studio's v1 shapes where they exist, and what Octavo's own clients need."""
