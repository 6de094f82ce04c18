"""The HTTP server: models in a process of their own, and what stands between them and whoever asks.

catalogue       which models there are, by name: nothing else can be asked for
frames          the messages between the server and the process of the models: lengths and JSON, never pickle
worker, verbs   that process, and what it can be asked
link            the server's end of the line to it
limits, gate    how much may be asked, and how many at once
security        Host, Origin, keys, headers
reading, fields what was asked: strict JSON, and the fields that a question has
api, app        the routes, and all of it put together
server          from the first connection to the last answer
studio          what the studio's page asks beyond that
"""
