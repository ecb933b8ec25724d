"""The conductor and its chores: what joins plan, run, record and publish while sweeps go on."""
