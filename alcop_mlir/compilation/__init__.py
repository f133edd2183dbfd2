"""From a module to a bundle: inputs, the pass pipeline, descriptions of functions.

`compiler` runs the passes through `pipelines` and generates code with `runtime.ptx`;
`inputs` reads modules, and `description` turns launches, with what passes decided of
them, into the manifest of `runtime`. Used by the tools and by `alcop_mlir.compile`.
Importing this package imports nothing.
"""
