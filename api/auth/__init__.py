"""Authentication: tokens, browser sessions, and login through OpenID Connect."""
