"""Operating system and hardware: processes, messages between them, locks, memory, signals, devices."""
