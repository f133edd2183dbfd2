"""Questions about IR, by room; an analysis changes nothing.

`ir` is about MLIR in general, `linalg` about what linalg ops compute, `layout` about
data in shared memory and registers, `pipelining` about which copies are pipelined, and
`host` about functions that launch kernels. All build on `ir`; `pipelining` and `host`
build on `layout` too.
"""
