"""Ray and Tune: the engine, the detached slots that train, and the relays that follow them."""
