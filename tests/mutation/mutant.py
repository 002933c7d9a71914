"""What a mutant is: one small change of rules, models or code, made in a process of its own and never written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from mutation.watching import Watch


@dataclass(frozen=True, slots=True)
class Mutant(ABC):
    """One change. ``kind`` is what is counted together, ``file`` where it is, ``what`` what changes there."""

    kind: str
    file: str
    what: str

    @property
    def name(self) -> str:
        """By this it is known again."""
        return f"{self.kind} {self.file}: {self.what}"

    @abstractmethod
    def watch(self, watch: Watch) -> None:
        """Say what has to be watched for it, before the tests run."""

    @abstractmethod
    def noticed_by(self, watch: Watch) -> set[str]:
        """The tests that came by what it changes."""

    @abstractmethod
    def apply(self) -> None:
        """Change this process."""
