"""HTTP and the command line: what a client asks of the service, and how it is answered."""
