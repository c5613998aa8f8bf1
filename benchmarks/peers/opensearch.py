"""OpenSearch or Elasticsearch: subscriptions are stored queries, a message is a document that is percolated.

Needs a server: `NEARCAST_BENCH_OPENSEARCH=http://host:9200`; an index `nearcast_bench` is made and dropped. With containers:
`docker run -p 9200:9200 -e discovery.type=single-node -e DISABLE_SECURITY_PLUGIN=true opensearchproject/opensearch:2`.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers.peer import Peer, pairs_table

_URL = "NEARCAST_BENCH_OPENSEARCH"
_INDEX = "nearcast_bench"
_FILED_AT_ONCE, _ASKED_AT_ONCE = 10_000, 50
_MOST_HITS = 5_000_000
_MAPPING = {
    "settings": {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": -1, "max_result_window": _MOST_HITS},
    "mappings": {
        "properties": {
            "query": {"type": "percolator"},
            "word": {"type": "keyword"},
            "x": {"type": "double"},
            "y": {"type": "double"},
        }
    },
}


class OpenSearch(Peer):
    """Stored queries of one shard; several documents are percolated at a time."""

    @classmethod
    def missing(cls) -> str | None:
        url = os.environ.get(_URL)
        if not url:
            return f"no OpenSearch is named: set {_URL}=http://..."
        try:
            _ask("GET", "")
        except (OSError, ValueError) as error:
            return f"OpenSearch does not answer: {error}"
        return None

    def load(self, subscriptions: pa.Table, history: pa.Table) -> None:
        self.close()
        _ask("PUT", _INDEX, _MAPPING)
        for first in range(0, subscriptions.num_rows, _FILED_AT_ONCE):
            lines = []
            for row in subscriptions.slice(first, _FILED_AT_ONCE).to_pylist():
                lines += [{"index": {"_id": str(row["id"])}}, {"query": _query_of(row)}]
            answer = _ask("POST", f"{_INDEX}/_bulk", lines)
            if answer["errors"]:
                raise RuntimeError(f"OpenSearch refused subscriptions: {json.dumps(answer)[:500]}")
        _ask("POST", f"{_INDEX}/_refresh")
        _ask("POST", f"{_INDEX}/_forcemerge?max_num_segments=1")

    def match(self, messages: pa.Table) -> pa.Table:
        message_ids: list[int] = []
        subscription_ids: list[int] = []
        for first in range(0, messages.num_rows, _ASKED_AT_ONCE):
            rows = messages.slice(first, _ASKED_AT_ONCE).to_pylist()
            documents = [{"word": list(map(str, row["keywords"])), "x": row["x"], "y": row["y"]} for row in rows]
            percolate = {"constant_score": {"filter": {"percolate": {"field": "query", "documents": documents}}}}
            body = {"query": percolate, "size": _MOST_HITS, "_source": False, "track_total_hits": False}
            for hit in _ask("POST", f"{_INDEX}/_search", body)["hits"]["hits"]:
                slots = hit["fields"]["_percolator_document_slot"]
                message_ids += [rows[slot]["id"] for slot in slots]
                subscription_ids += [int(hit["_id"])] * len(slots)
        return pairs_table(np.array(message_ids, np.int64), np.array(subscription_ids, np.int64))

    @property
    def n_bytes(self) -> int:
        return int(_ask("GET", f"{_INDEX}/_stats/store")["_all"]["primaries"]["store"]["size_in_bytes"])

    def close(self) -> None:
        try:
            _ask("DELETE", _INDEX)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise


def _query_of(row: dict[str, Any]) -> dict[str, Any]:
    words = [{"term": {"word": str(word)}} for word in row["keywords"]]
    sides = [{"range": {axis: {"gte": row[f"{axis}0"], "lte": row[f"{axis}1"]}}} for axis in ("x", "y")]
    return {"bool": {"filter": [*words, *sides]}}


def _ask(method: str, path: str, body: Any = None) -> Any:
    data, kind = None, "application/json"
    if isinstance(body, list):
        data, kind = "".join(json.dumps(line) + "\n" for line in body).encode(), "application/x-ndjson"
    elif body is not None:
        data = json.dumps(body).encode()
    url = f"{os.environ[_URL].rstrip('/')}/{path}"
    request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.loads(answer.read() or b"{}")
