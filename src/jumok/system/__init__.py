"""What jumok uses of the operating system: processes, messages between them, memory, signals."""
