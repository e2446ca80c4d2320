"""What makes the pages of make pages."""
