"""Two contractions with row reductions between them as one kernel."""
