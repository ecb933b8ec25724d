"""What is written to the database, each in one transaction that is guarded by the state it leaves."""
