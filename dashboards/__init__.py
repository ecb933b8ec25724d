"""Pages for people: pure functions from views and figures to HTML, in words and shapes before colours."""
