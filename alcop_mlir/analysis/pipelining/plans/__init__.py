"""Plans of loops: decided, read in all their forms, composed and checked."""
