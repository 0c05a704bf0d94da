"""Pictures: reading their files safely, and cutting them into patches. Only `reading.py` needs Pillow."""
