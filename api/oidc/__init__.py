"""Logging people in by a provider of OpenID Connect: the authorization code flow with PKCE, state and nonce."""
