"""Questions about IR, by room; an analysis changes nothing."""
