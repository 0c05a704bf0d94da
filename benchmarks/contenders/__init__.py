"""Programs that measure one thing each and print it as one line of JSON (`report.py`)."""
