"""Extracts the main text of an HTML page, which may be hostile.

HTML parsers are large and written in C, so this code runs confined, never in the service's own process.
"""

from __future__ import annotations

from typing import Any


def extract(data: bytes, charset: str | None, url: str, links: bool) -> dict[str, Any]:
    """Return ``{"title", "text"}`` of an HTML page: the main text as Markdown.

    Args:
        data: The page, perhaps truncated.
        charset: The charset that the server sent. If it is None or unknown, the page's own declaration or a guess applies.
        url: The page's address, to resolve relative links.
        links: Whether to keep links.
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
        # The page has hardly any markup.
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
        # Fall back to all text of the page.
        pass
    if not text:
        for noise in tree.xpath("//script|//style|//noscript|//template"):
            noise.drop_tree()
        text = "\n".join(line for part in tree.itertext() if (line := " ".join(str(part).split())))
    return {"title": " ".join(title.split()), "text": text}
