"""What each instruction does: translators from PTX to closures over the machine.

`table` has a row for every opcode: its handler, and what a run has to know of it beyond
its effect; `access` makes every access to memory.
"""
