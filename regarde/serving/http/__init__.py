"""HTTP: limits, keys, security headers, admission, logging and metrics, the protocol, and startup and shutdown."""
