"""What ``tdbg demo`` shows: the example notebooks, and a made-up run for those without PyTorch."""
