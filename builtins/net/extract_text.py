"""The readable part of a page, out of hostile HTML.

Pure: bytes in, JSON out. Parsers of HTML are large, and written in C, so this is never called in the service's own process.
"""

from __future__ import annotations

from typing import Any


def extract(data: bytes, charset: str | None, url: str, links: bool) -> dict[str, Any]:
    """``{"title", "text"}`` of an HTML page: its main text as Markdown, without what stands around it.

    Args:
        data: The page, perhaps cut off.
        charset: What the server says that it is written in; what the page says, or a guess, where that is None or unknown.
        url: Where it comes from, for links that are relative.
        links: Whether links stay in the text.
    """
    import codecs

    import trafilatura
    from lxml import etree, html

    page: str | bytes = data
    if charset is not None:
        try:
            page = data.decode(codecs.lookup(charset).name, "replace")
        except (LookupError, UnicodeError):
            page = data
    tree = trafilatura.load_html(page)
    if tree is None:
        # A page without much of a page's form.
        try:
            tree = html.document_fromstring(page)
        except (etree.LxmlError, ValueError):
            return {"title": "", "text": ""}
    title = tree.findtext(".//title") or ""
    text = None
    try:
        text = trafilatura.extract(
            tree,
            url=url,
            output_format="markdown",
            include_comments=False,
            include_links=links,
            include_tables=True,
            favor_recall=True,
        )
    except (RecursionError, ValueError, TypeError, AttributeError):
        # A page that it doesn't get on with has text all the same.
        pass
    if not text:
        for noise in tree.xpath("//script|//style|//noscript|//template"):
            noise.drop_tree()
        text = "\n".join(line for part in tree.itertext() if (line := " ".join(str(part).split())))
    return {"title": " ".join(title.split()), "text": text}
