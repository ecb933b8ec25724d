"""Who may ask: tokens, sessions of browsers, and a provider of OpenID Connect that logs people in."""
