"""What a client can ask for: what joins plan, record and publish to answer."""
