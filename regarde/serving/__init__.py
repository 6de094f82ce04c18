"""The HTTP server. Its models run in a worker process.

Three packages, each of which imports only from those before it:

http      limits, log, metrics; keys, security; admission (capacity and rates); body (JSON of requests); middleware
          (checks before a route runs); protocol (HTTP limits that uvicorn lacks); server (startup and shutdown)
models    catalog (names and descriptions); messages (between the two processes); sizes, requests, encoding (text <->
          tokens); worker (the process); client (the server's side of it); service (what a route uses)
routes    fields (validation); responses; api, libretranslate (languages, markup); traces, runs, reports and studio;
          health; openapi; pages

app puts them together.
"""
