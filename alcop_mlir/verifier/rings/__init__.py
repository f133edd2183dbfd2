"""Checks rings of mbarriers between the roles of warps: `rings.check`."""
