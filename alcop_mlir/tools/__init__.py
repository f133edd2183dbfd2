"""The command-line tools alcop-opt, alcop-compile, alcop-run and alcop-tune.

Each is a module with a `main`; `command_line` holds what they share. Importing this
package imports nothing.
"""
