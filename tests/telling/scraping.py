"""Metrics as Prometheus reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from opencode_mcp.scrape import exposition
from opencode_mcp.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

Labels: TypeAlias = frozenset[tuple[str, str]]
Series: TypeAlias = tuple[str, Labels]


class Scrape:
    """The values of one scrape."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        #: type and names of labels by the metric's name
        self.kinds: dict[str, tuple[str, frozenset[str]]] = {}
        self.values: dict[Series, float] = {}
        for family in families:
            labels = {name for sample in family.samples for name in sample.labels} - {"le"}
            suffix = "_total" if family.type == "counter" else ""
            self.kinds[family.name + suffix] = (family.type, frozenset(labels))
            for sample in family.samples:
                self.values[sample.name, frozenset(sample.labels.items())] = sample.value

    def get(self, name: str, **labels: str) -> float:
        """Return the value of one series, which must be there."""
        return self.values[f"opencode_mcp_{name}", frozenset(labels.items())]

    def all(self, name: str) -> dict[str, float]:
        """Return the values of a metric with one label, by that label's value."""
        found = f"opencode_mcp_{name}"
        return {
            next(iter(labels))[1]: value
            for (series, labels), value in self.values.items()
            if series == found
        }

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum of all series that have these labels, among others."""
        wanted = set(labels.items())
        return sum(
            value
            for (found, has), value in self.values.items()
            if found == f"opencode_mcp_{name}" and wanted <= has
        )


async def scrape(database: Path) -> Scrape:
    """Scrape this process, with what its database holds."""
    async with Store.open(database) as store:
        content, content_type = await exposition(store)
    assert content_type.startswith("text/plain; version=0.0.4")
    return Scrape(content.decode())


class Growth:
    """What was counted between two scrapes."""

    def __init__(self, before: Scrape, after: Scrape) -> None:
        self._before, self._after = before, after

    def of(self, name: str, **labels: str) -> float:
        """Return by how much the series with these labels have grown, all together."""
        return self._after.sum(name, **labels) - self._before.sum(name, **labels)

    def by(self, name: str, *by: str) -> dict[tuple[str, ...], float]:
        """Return what has grown, and by how much, by the values of some labels."""
        found: dict[tuple[str, ...], float] = {}
        for (series, labels), value in self._after.values.items():
            grown = value - self._before.values.get((series, labels), 0.0)
            if series == f"opencode_mcp_{name}" and grown:
                key = tuple(dict(labels)[label] for label in by)
                found[key] = found.get(key, 0.0) + grown
        return found
