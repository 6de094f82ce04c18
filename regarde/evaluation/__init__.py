"""How good is it? Metrics by the field's own libraries, and what attention is worth against gold links."""
