"""Several models on the same data under the same budget: trained one after the other, measured, and reported on."""
