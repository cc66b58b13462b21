"""What helps to analyse trials."""
