"""What a certificate says, read strictly from JSON values."""
