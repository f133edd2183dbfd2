"""How data lies in memory and registers: copies, fragments, swizzles, staging."""
