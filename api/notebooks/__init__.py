"""What a notebook shows of a sweep: frames, tables and figures; the client comes here when it is first asked."""
