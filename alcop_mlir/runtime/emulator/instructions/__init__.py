"""What each instruction does: translators from PTX to closures over the machine.

`table` finds the translator of an opcode; `traits` says what a run has to know of an
instruction beyond its effect; `access` makes every access to memory.
"""
