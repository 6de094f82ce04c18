"""Models in a worker process, and the server's side: text -> tokens, requests to the worker, results -> text."""
