"""What a client asks a server for, by noun, beside what sweeps do."""
