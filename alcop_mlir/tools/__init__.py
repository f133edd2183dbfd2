"""The command-line tools alcop-opt, alcop-compile, alcop-run and alcop-tune.

Each tool is a module with a `main`; `command_line` holds what they share. They build on
`pipelines`, `compilation`, `runtime` and `tuning`, and no other package imports them.
Importing this package imports nothing.
"""
