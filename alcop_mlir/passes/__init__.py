"""What all passes share: the base class with options and contract, and IR builders.

`base.Pass` is the base class, whose fields are the pass's options; `build` has builders
of index arithmetic, loads and stores, loops and branches, and copies of ops. The passes
themselves are in `transforms`, and `pipelines` runs them.
"""
