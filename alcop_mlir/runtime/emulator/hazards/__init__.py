"""The race checks of shared and global memory, and the reports that they make.

The shadows here are the watchers that `machine.batch` describes.
"""
