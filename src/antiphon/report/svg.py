"""SVG as a tree of elements: shared by all drawings of a page."""

import xml.etree.ElementTree as ET


def drawing(class_: str, size: tuple[float, float], prefix: str, title: str, description: str) -> ET.Element:
    """An empty drawing that can be placed in a page beside others; `prefix` begins its ids."""
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": class_,
            "viewBox": f"0 0 {size[0]:g} {size[1]:g}",
            "role": "img",
            "aria-labelledby": f"{prefix}-title {prefix}-desc",
        },
    )
    add(root, "title", title, id=f"{prefix}-title")
    add(root, "desc", description, id=f"{prefix}-desc")
    return root


def add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str | float) -> ET.Element:
    """Add a child element; a trailing underscore of a keyword (`class_`) is dropped, others become hyphens."""
    named = {
        name.rstrip("_").replace("_", "-"): f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in attributes.items()
        if value != ""
    }
    child = ET.SubElement(parent, tag, named)
    child.text = text
    return child
