"""Whether each result is made of the right elements, and stored where it belongs."""
