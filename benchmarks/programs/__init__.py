"""Programs that each measure one system and print the result as one line of JSON (`report.py`)."""
