"""How the problems of a spec are counted and worded, and how much work finding them may take."""
