"""The HTTP server: models in a process of their own, and what stands between them and whoever asks.

catalog                    which models there are, by name: nothing else can be asked for
frames                       messages between the server and the process of the models: JSON and numbers, never pickle
worker, verbs                that process, and what it can be asked
link, jobs                   the server's end of the line to it: text -> tokens, and answers -> text
limits, gate                 how much may be asked, and how many at once
security, keys, door         who may ask, and what every request goes through
protocol                     bounds that uvicorn leaves to others
reading, fields              what was asked: strict JSON, and the fields that a question has
service                      what every route works with
api, libretranslate          the routes that translate; languages, markup: what the second of them needs
health, metrics, journal     is it well, what has it done
openapi, documentation       the API's own description
studio                       what the studio's page asks beyond that: exploring (searches that are told), runs, reports
app, server                  all of it put together, from the first connection to the last answer
"""
