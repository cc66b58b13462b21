"""Numbers behind the views: down-sampling, re-binning, embeddings."""
