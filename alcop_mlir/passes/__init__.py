"""What all passes share: the base class with options and contract, and IR builders."""
