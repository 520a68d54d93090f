"""A view as a web page or as an XML file.

Both hold the view's rows after the last batch. On the page every value is escaped text, and the
page allows no scripts. The XML has one element per row and one child per column.
"""

from __future__ import annotations

from html import escape

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SinkKind
from axlog.connect.sinks.file_state import WholeFile
from axlog.connect.sources.poller import clean
from axlog.reporting import counted

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid #8884; }
"""


class PageOptions(Options):
    """Options of `page`."""

    path: LocalPath = Field(description="The file; {view} in it is the view's name.")
    title: str | None = Field(
        default=None, description="The page's title (default: the view's name)."
    )
    refresh: int | None = Field(
        default=None, ge=1, description="Seconds after which the page reloads."
    )


class PageSink(WholeFile):
    """A view as a web page."""

    def __init__(self, options: PageOptions, origin: Origin) -> None:
        super().__init__(origin.path(options.path), origin)
        self.title = options.title or self.view.name
        self.refresh = options.refresh

    def render(self) -> bytes:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in values) + "</tr>"
            for values in self.in_order()
        )
        again = f'<meta http-equiv="refresh" content="{self.refresh}">' if self.refresh else ""
        title = escape(self.title)
        return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">{again}
<title>{title}</title><style>{_STYLE}</style></head>
<body><h1>{title}</h1><p>{counted(self.rows.total(), "row")}</p>
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></body></html>
""".encode()


class XmlOptions(Options):
    """Options of `xml`."""

    path: LocalPath = Field(description="The file; {view} in it is the view's name.")
    root: str = Field(
        default="rows", pattern=r"^[A-Za-z_][\w.\-]*$", description="The name of the root element."
    )
    row: str = Field(default="row", pattern=r"^[A-Za-z_][\w.\-]*$", description="A row's name.")


class XmlSink(WholeFile):
    """A view as an XML file."""

    def __init__(self, options: XmlOptions, origin: Origin) -> None:
        super().__init__(origin.path(options.path), origin)
        self.options = options

    def render(self) -> bytes:
        root = etree.Element(self.options.root, view=clean(self.view.name))
        for values in self.in_order():
            row = etree.SubElement(root, self.options.row)
            for column, value in zip(self.columns, values, strict=True):
                etree.SubElement(row, column).text = clean(str(value))
        return etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)


PAGE = SinkKind("page", PageOptions, PageSink, "A view as a web page.", is_table=True)
XML = SinkKind("xml", XmlOptions, XmlSink, "A view as an XML file.", is_table=True)
