"""One map of processes in one of the formats."""

from __future__ import annotations

from enum import Enum

from cudalint.project.process_map import ProcessMap


class MapFormat(Enum):
    """The names of the formats on the command line."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    HTML = "html"


def render(found: ProcessMap, output_format: MapFormat, directory: str, *, colour: bool = False) -> str:
    """The whole text; paths are shown from ``directory``, only JSON has them absolute."""
    match output_format:
        case MapFormat.TEXT:
            from cudalint.report.maps import text

            return text.render(found, directory, colour=colour)
        case MapFormat.MERMAID:
            from cudalint.report.maps import graphs

            return graphs.mermaid(found, directory)
        case MapFormat.DOT:
            from cudalint.report.maps import graphs

            return graphs.dot(found, directory)
        case MapFormat.JSON:
            from cudalint.report.maps import as_json

            return as_json.render(found)
        case MapFormat.HTML:
            from cudalint.report.maps import html

            return html.render(found, directory)
