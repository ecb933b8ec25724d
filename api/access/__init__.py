"""Who may ask: tokens, sessions, one-time codes, and the account at the other end."""
