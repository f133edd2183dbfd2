"""Linear terms in symbols, and which facts contradict each other by a given proof."""
