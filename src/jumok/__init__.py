"""jumok (주목, "attention"): train a translator on your own sentence pairs and see what it pays attention to."""
