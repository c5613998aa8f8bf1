"""Write the sample that ships in `src/nearcast/workloads/sample/` from the public data of a folder.

    python scripts/build_sample.py --data FOLDER

Needs `messages_noaa_storms2019.parquet`, `messages_nyc311_animals2025.parquet` and `gazetteer_places.parquet` there. The same
input gives the same output. Every subscription is made from a real message: it asks for a topic the message has, near the
closest town of the gazetteer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.model.analysis import Analysis
from nearcast.model.interest import Interest, parse_interest

TARGET = Path(__file__).resolve().parent.parent / "src" / "nearcast" / "workloads" / "sample"
NEW_YORK_BOX = (-74.27, 40.48, -73.69, 40.93)
N_STORM_SUBSCRIPTIONS = 1150
N_ANIMAL_SUBSCRIPTIONS = 850


@dataclass(frozen=True)
class Topic:
    """What somebody may want to hear about: the slug of its id, the interest, and the words of its note."""

    slug: str
    interest: str
    words: str


STORM_TOPICS = (
    Topic("hail", "hail AND NOT marine", "hail on land"),
    Topic("tornado", 'tornado OR "funnel cloud"', "tornadoes and funnel clouds"),
    Topic("waterspout", "waterspout", "waterspouts"),
    Topic("flash-flood", '"flash flood"', "flash floods"),
    Topic("river-flood", "flood AND river AND NOT flash", "rivers that rise slowly, not flash floods"),
    Topic("road-flooded", "(road OR roads OR highway OR roadway) AND (flooded OR closed)", "roads flooded or closed"),
    Topic("trees-down", "(tree OR trees) AND (down OR uprooted OR snapped OR blown)", "trees brought down"),
    Topic("power-out", 'power AND (lines OR poles OR outages OR "without power")', "power lines and outages"),
    Topic("roof-damage", "(roof OR roofs) AND (damage OR blown OR removed)", "damaged roofs"),
    Topic("landslide", '"debris flow" OR mudslide OR landslide', "mud and landslides"),
    Topic("heavy-rain", "rain AND heavy AND NOT snow", "heavy rain without snow"),
    Topic("gusts-at-sea", "marine AND wind AND (gust OR measured)", "gusts measured at sea"),
    Topic("lightning", "lightning", "lightning strikes"),
    Topic("thunderstorm", "thunderstorm AND wind", "thunderstorm winds"),
)
ANIMAL_TOPICS = (
    Topic("rats", "(rat OR mouse) AND dead", "dead rats or mice"),
    Topic("raccoons", "raccoon OR opossum", "raccoons and opossums"),
    Topic("birds", "bird OR pigeon", "birds"),
    Topic("loose-dogs", 'dog AND "off leash"', "dogs off the leash"),
    Topic("dogs", "(dog OR dogs) AND NOT leash", "dogs, leash or no leash aside"),
    Topic("cats", "cat OR cats", "cats"),
    Topic("wildlife", "wildlife OR squirrel", "wildlife"),
    Topic("neglect", 'abuse AND (neglected OR chained OR "no shelter")', "neglected animals"),
    Topic("park-animals", "animal AND park AND NOT dead", "animals in parks"),
    Topic("dead-on-street", "dead AND animal AND (street OR sidewalk)", "dead animals on the street"),
    Topic("unsanitary", "unsanitary", "unsanitary places"),
    Topic("roosters", "rooster OR illegal", "roosters and other animals nobody may keep"),
)
CREDITS = """# Where the sample comes from

- **Storm reports** (`messages.parquet`, ids below 10,000,000): NOAA Storm Events Database, January to March 2019, by way of
  github timtrice/NCDC-Storm-Events. A work of the US Government, hence public domain (17 U.S.C. 105); parts were reported to
  the National Weather Service by others.
- **Animal reports** (`messages.parquet`, other ids): NYC Open Data, 311 service requests about animals, January to March 2025,
  by way of github plotly/datasets. Open by law without licence or restriction of use (NYC Administrative Code 23-502 d); the
  City asks that source and changes are named and vouches for nothing.
- **Places** (`subscriptions.parquet`, `notes.parquet`): GeoNames.org, CC BY 4.0. Names were shortened to ids, regions drawn
  around them.

Changes: storms without coordinates were left out, texts were put together from fields of the sources, times are seconds since
1970 of the local wall clock. The subscriptions are made up by `scripts/build_sample.py`; no real person made them.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the bundled sample.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data files")
    parser.add_argument("--output", type=Path, default=TARGET, help="where to write (default: the package)")
    arguments = parser.parse_args()
    build(arguments.data, arguments.output)


def build(data: Path, output: Path) -> None:
    """Write the four files of the sample."""
    storms = read_messages(data / "messages_noaa_storms2019.parquet")
    animals = read_messages(data / "messages_nyc311_animals2025.parquet")
    messages = pa.concat_tables([storms, animals]).sort_by([("time", "ascending"), ("id", "ascending")])
    places = read_places(data / "gazetteer_places.parquet")
    rows = subscriptions_for(storms, STORM_TOPICS, places, (0.25, 0.4, 0.8), N_STORM_SUBSCRIPTIONS)
    in_new_york = np.flatnonzero(
        (places.x >= NEW_YORK_BOX[0]) & (places.x <= NEW_YORK_BOX[2]) & (places.y >= NEW_YORK_BOX[1])
        & (places.y <= NEW_YORK_BOX[3]) & (places.state == "New York")
    )  # fmt: skip
    rows += subscriptions_for(animals, ANIMAL_TOPICS, places.take(in_new_york), (0.008, 0.014, 0.025), N_ANIMAL_SUBSCRIPTIONS)
    rows.sort(key=lambda row: str(row["id"]))
    output.mkdir(parents=True, exist_ok=True)
    corners = [(name, pa.float64()) for name in ("x0", "y0", "x1", "y1")]
    schema = pa.schema([("id", pa.string()), ("interest", pa.string()), ("region", pa.string()), *corners])
    notes = pa.schema([("id", pa.string()), ("note", pa.string())])
    for name, table in (
        ("messages", messages),
        ("subscriptions", pa.Table.from_pylist(rows, schema)),
        ("notes", pa.Table.from_pylist(rows, notes)),
    ):
        pq.write_table(table, output / f"{name}.parquet", compression="zstd", compression_level=19)
    (output / "CREDITS.md").write_text(CREDITS, encoding="utf-8")


def read_messages(file: Path) -> pa.Table:
    """A source file with the columns of the sample."""
    table = pq.read_table(file)
    return pa.table(
        {
            "id": table["id"],
            "time": table["ts"].cast(pa.float64()),
            "x": table["lon"],
            "y": table["lat"],
            "text": table["text"],
            "category": table["category"],
            "place": table["place"],
        }
    )


@dataclass(frozen=True)
class PlaceTable:
    """Towns of the United States, largest first."""

    name: Any
    state: Any
    x: Any
    y: Any

    def take(self, rows: Any) -> PlaceTable:
        return PlaceTable(self.name[rows], self.state[rows], self.x[rows], self.y[rows])

    def nearest(self, x: float, y: float) -> int:
        return int(np.argmin(((self.x - x) * math.cos(math.radians(y))) ** 2 + (self.y - y) ** 2))


def read_places(file: Path) -> PlaceTable:
    """The towns that subscriptions are named after."""
    table = pq.read_table(file)
    wanted = pc.and_(
        pc.equal(table["country"], "US"), pc.and_(pc.equal(table["src"], "geonames"), pc.greater(table["pop"], 1000))
    )
    table = table.filter(wanted).sort_by([("pop", "descending"), ("id", "ascending")])
    name, state, x, y = (table[column].to_numpy() for column in ("name", "admin1", "lon", "lat"))
    return PlaceTable(name, state, x, y)


def subscriptions_for(
    messages: pa.Table, topics: tuple[Topic, ...], places: PlaceTable, sizes: tuple[float, ...], n: int
) -> list[dict[str, Any]]:
    """`n` subscriptions, each for a topic of a message near the closest town."""
    interests = [(topic, parse_interest(topic.interest)) for topic in topics]
    words = Analysis().words
    made: dict[str, dict[str, Any]] = {}
    for message in sorted(messages.to_pylist(), key=lambda message: chance(message["id"], "order")):
        if len(made) == n:
            break
        topic = topic_of(set(words(message["text"])), interests, message["id"])
        if topic is None:
            continue
        place = places.nearest(message["x"], message["y"])
        row = subscription(topic, places, place, sizes, message["id"])
        made.setdefault(str(row["id"]), row)
    return list(made.values())


def topic_of(words: set[str], interests: list[tuple[Topic, Interest]], message_id: int) -> Topic | None:
    """One of the topics that the message has."""
    found = [topic for topic, interest in interests if interest.holds(words)]
    return found[int(chance(message_id, "topic") * len(found))] if found else None


def subscription(topic: Topic, places: PlaceTable, place: int, sizes: tuple[float, ...], message_id: int) -> dict[str, Any]:
    """A box around the town, or for every fourth an octagon."""
    name, state = str(places.name[place]), str(places.state[place])
    x, y = float(places.x[place]), float(places.y[place])
    size = sizes[int(chance(message_id, "size") * len(sizes))]
    row: dict[str, Any] = {
        "id": slug(f"{topic.slug} near {name} {state}"),
        "interest": topic.interest,
        "note": f"Tell me about {topic.words} within about {round(size * 111)} km of {name}, {state}.",
    }
    # A degree of longitude is shorter than one of latitude.
    across = size / math.cos(math.radians(y))
    if chance(message_id, "shape") < 0.25:
        corners = [math.radians(22.5 + 45 * corner) for corner in range(8)]
        ring = [[round(x + across * math.cos(angle), 4), round(y + size * math.sin(angle), 4)] for angle in corners]
        row["region"] = json.dumps({"type": "Polygon", "coordinates": [[*ring, ring[0]]]}, separators=(",", ":"))
    else:
        row |= {"x0": round(x - across, 4), "y0": round(y - size, 4), "x1": round(x + across, 4), "y1": round(y + size, 4)}
    return row


def chance(number: int, purpose: str) -> float:
    """A fixed value in [0, 1) for a number and a purpose."""
    digest = hashlib.blake2b(f"{number}/{purpose}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48


def slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


if __name__ == "__main__":
    main()
