"""Worker processes that run the models, and the queue that feeds them."""
