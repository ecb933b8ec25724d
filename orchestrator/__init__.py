"""A sweep's life in four verbs: plan, run, record, publish."""
