"""The table of opcodes: what the emulator knows of each, a row for each form."""
