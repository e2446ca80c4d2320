"""What makes the pages of make gallery."""
