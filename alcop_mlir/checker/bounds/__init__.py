"""Whether accesses to global memory are inside of arrays."""
