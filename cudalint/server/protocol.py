"""The protocol as pygls speaks it, for editors that speak a later one, and with an answer to each question."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol


class Tolerant(LanguageServerProtocol):
    """Begins with editors that can do what is not known here, and answers what cannot be understood."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message of the editor as an object."""
        try:
            return super().structure_message(self._known(self._complete(data)))
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), int | str):
                # Who asked waits for it.
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def _complete(self, data: dict[str, Any]) -> dict[str, Any]:
        """The message with parameters, which it may leave out and pygls demands of a method that nobody knows."""
        method = data.get("method")
        return data if method is None or self.get_message_type(method) is not None else {"params": None, **data}

    def _known(self, data: dict[str, Any]) -> dict[str, Any]:
        """The message; of what an editor says that it can do, without that which this version has no name for."""
        params = data.get("params")
        if data.get("method") != types.INITIALIZE or not isinstance(params, dict):
            return data
        said = params.get("capabilities")
        if not isinstance(said, dict) or self._is_known(said):
            return data
        kept = {group: self._known_of(group, parts) for group, parts in said.items() if isinstance(parts, dict)}
        return {**data, "params": {**params, "capabilities": kept}}

    def _known_of(self, group: str, parts: dict[str, Any]) -> dict[str, Any]:
        return {name: part for name, part in parts.items() if self._is_known({group: {name: part}})}

    def _is_known(self, said: dict[str, Any]) -> bool:
        try:
            self._converter.structure(said, types.ClientCapabilities)
        except Exception:  # whatever its parts raise
            return False
        return True
