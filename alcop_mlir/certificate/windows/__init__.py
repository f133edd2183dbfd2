"""Where windows are moved over arrays: which columns of these accesses are of."""
