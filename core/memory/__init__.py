"""What a model needs, what there is, and what to do when they differ; known before anything is loaded."""
