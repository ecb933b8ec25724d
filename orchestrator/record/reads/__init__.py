"""What is read of the database."""
