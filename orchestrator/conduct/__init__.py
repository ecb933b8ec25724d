"""The conductor: joins plan, run, record and publish while sweeps run."""
