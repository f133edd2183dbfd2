"""That accesses to global memory stay inside of the arrays that pointers name.

Of one thread, which stands for all: nothing that others do changes an address. Its
number is a symbol as sizes are.
"""
