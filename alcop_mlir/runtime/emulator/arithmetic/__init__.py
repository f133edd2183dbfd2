"""The arithmetic of PTX on NumPy arrays: integers of every width, and floats.

These are functions of values. They know neither registers nor instructions nor types;
every other room of the emulator builds on this one.
"""
