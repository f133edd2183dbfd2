"""Passes that give warps of a block roles of their own: copies by TMA, and wgmma."""
