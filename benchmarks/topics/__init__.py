"""What is compared: each topic makes its contests in a working folder, and may remark on their results."""
