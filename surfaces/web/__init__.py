"""The review as pages in a browser, served on the loopback address of this machine only.

The pages are rendered here and work without JavaScript. They show what the service says and hand it the person's decisions; they
decide nothing. All text by agents reaches a page through `visible`, which escapes it and makes hidden characters visible.
"""
