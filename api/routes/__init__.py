"""The routes of REST and of the pages."""
