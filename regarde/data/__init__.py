"""tokens -> batch: corpora as streams of pairs, embedded data sets, batches and their order."""
