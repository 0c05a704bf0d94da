"""Pictures: reading their files safely, and cutting them into patches. numpy, and Pillow for the files."""
