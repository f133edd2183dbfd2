"""The instructions of a kernel as a proof reads them, simplified where it may be."""
