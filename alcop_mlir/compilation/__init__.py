"""From a module to a bundle: inputs, the pass pipeline, descriptions of functions.

`compiler` runs the passes through `pipelines` and generates code with `runtime.ptx`;
`inputs` reads modules, `decisions` records what the passes decide for each kernel, and
`description` turns launches into the manifest of `runtime`. Used by the tools and by
`alcop_mlir.compile`. Importing this package imports nothing.
"""
