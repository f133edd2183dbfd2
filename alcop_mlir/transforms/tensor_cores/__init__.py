"""Passes that turn tile code into code of threads and lanes, on pipelined kernels."""
