"""The posted form, defined once: what a spec, its axes, tables and figures are."""
