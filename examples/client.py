#!/usr/bin/env python3
"""A client of bhav in Python's standard library alone: copy what you need.

    python3 examples/client.py snapshot  http://127.0.0.1:8080 --answers 10
    python3 examples/client.py stream    http://127.0.0.1:8080 --answers 10
    python3 examples/client.py prices    http://127.0.0.1:8080 NSE:INFY 'NSE:M&M'
    python3 examples/client.py portfolio http://127.0.0.1:8080 --email you@example.com
    python3 examples/client.py journal   http://127.0.0.1:8080 --email you@example.com

`portfolio` syncs with broker A first where it is given an API key. With `--sim URL`, the address of
the demo's simulator, it gets the one-time code of the broker's login page by itself.
"""

import argparse
import getpass
import http.client
import json
import os
import random
import sys
import time
import urllib.parse
from decimal import Decimal

TIMEOUT_S = 30  # A sync may take 25.
POLL_EVERY_S = 1
WAIT_MAX_S = 60
DEAD_AFTER_S = 45  # A stream beats every 15 seconds.
BACK_OFF_MAX_S = 30
POLLS_INSTEAD = 60  # of a stream that is refused, before it is tried again


class Problem(Exception):
    """An answer that is an error (RFC 9457). Switch on `code`: it is stable, `detail` is not."""

    def __init__(self, status, document, headers):
        self.status = status
        self.code = document["code"]
        self.detail = document["detail"]
        self.request_id = headers["X-Request-Id"]
        retry_after = headers["Retry-After"]
        self.retry_after_s = int(retry_after) if retry_after else None
        super().__init__(f"{status} {self.code}: {self.detail} (request {self.request_id})")


def connection(url, timeout_s):
    parts = urllib.parse.urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    return kinds[parts.scheme](parts.netloc, timeout=timeout_s)


class Client:
    """One keep-alive connection and, after a login, its access token."""

    def __init__(self, url):
        self._connection = connection(url, TIMEOUT_S)
        self._token = None

    def call(self, method, path, body=None, headers=None):
        """Status, headers and document of an answer; raises `Problem` where it is an error."""
        headers = dict(headers or {}, Accept="application/json")
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            # A Decimal is written as the number that it is, with every digit.
            headers["Content-Type"] = "application/json"
            body = _json(body).encode()
        response = self._exchange(method, path, body, headers)
        content = response.read()
        # Prices and money are exact decimals: no binary float on the way.
        document = json.loads(content, parse_float=Decimal) if content else None
        if response.status >= 400:
            raise Problem(response.status, document, response.headers)
        return response.status, response.headers, document

    def _exchange(self, method, path, body, headers):
        try:
            self._connection.request(method, path, body, headers)
            return self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # An idle connection was closed. A GET can be sent again; of anything else it is not
            # known whether it was done.
            self._connection.close()
            if method != "GET":
                raise
            self._connection.request(method, path, body, headers)
            return self._connection.getresponse()

    def get(self, path):
        return self.call("GET", path)[2]

    def login(self, email, password, register=False):
        """Logs in; with `register` makes the account first where there is none yet."""
        person = {"email": email, "password": password}
        if register:
            try:
                self._token = self.call("POST", "/api/auth/register", person)[2]["access_token"]
                return
            except Problem as problem:
                if problem.code != "email_taken":
                    raise
        self._token = self.call("POST", "/api/auth/login", person)[2]["access_token"]


def _json(value):
    """JSON with exact decimals; json.dumps would make floats of them."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}:{_json(member)}" for name, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def mark(old):
    return " OLD" if old["stale"] else ""


def percent(change):
    return "change unknown" if change is None else f"{change:+} %"


def show(document):
    market = document["market"]
    print(
        f"{market['as_of_ist']} {market['phase']}{mark(market)}"
        f"  NIFTY 50 {document['index1_price']} ({percent(document['index1_change'])})"
        f"  NIFTY BANK {document['bankindex_price']}  SENSEX {document['index2_price']}",
        flush=True,
    )


def snapshot(client, answers):
    """Polls the index snapshot. An unchanged one is a 304 without a body."""
    etag, unchanged = None, 0
    while answers > 0:
        try:
            headers = {"If-None-Match": etag} if etag else {}
            status, headers, document = client.call("GET", "/api/index/snapshot", headers=headers)
        except Problem as problem:
            # Nothing is known yet, or too much is asked: the answer says how long to wait.
            if problem.retry_after_s is None:
                raise
            print(f"waiting: {problem.code}", file=sys.stderr)
            time.sleep(min(problem.retry_after_s, WAIT_MAX_S))
            continue
        answers -= 1
        if status == 304:
            unchanged += 1
        else:
            etag = headers["ETag"]
            show(document)
        if answers > 0:
            time.sleep(POLL_EVERY_S)
    print(f"{unchanged} answers were 304: nothing had changed")


class Stream:
    """The index snapshot as server-sent events, over as many connections as it takes."""

    def __init__(self, url):
        self.url = url
        self.last_id = None
        self.retry_s = 3.0

    def snapshots(self):
        """The snapshots of one connection, until it ends. Raises `Problem` where it is refused."""
        stream = connection(self.url, DEAD_AFTER_S)
        headers = {"Accept": "text/event-stream"}
        if self.last_id:
            # The server sends nothing until there is another one than this.
            headers["Last-Event-ID"] = self.last_id
        try:
            stream.request("GET", "/api/index/stream", headers=headers)
            response = stream.getresponse()
            if response.status != 200:
                raise Problem(response.status, json.loads(response.read()), response.headers)
            for name, last_id, data in self._events(response):
                if name == "snapshot":
                    # Only a whole event counts: after a cut the same one comes again.
                    self.last_id = last_id
                    yield json.loads(data, parse_float=Decimal)
        finally:
            stream.close()

    def _events(self, lines):
        """Name, id and data of each event (WHATWG HTML 9.2.6, for lines that end in LF)."""
        name, last_id, data = "", self.last_id, []
        for line in lines:
            field, _, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if line in (b"\n", b"\r\n"):
                if data:
                    yield name or "message", last_id, "\n".join(data)
                name, data = "", []
            elif field == "event":
                name = value
            elif field == "id":
                last_id = value
            elif field == "data":
                data.append(value)
            elif field == "retry" and value.isdigit():
                self.retry_s = int(value) / 1000


def stream(client, url, answers):
    """Follows the index snapshot, and polls where streams are refused."""
    source, failures = Stream(url), 0
    while True:
        try:
            for document in source.snapshots():
                failures = 0
                show(document)
                answers -= 1
                if answers == 0:
                    return
            cause = "the stream has ended"
        except Problem as problem:
            print(f"polling instead: {problem.code}", file=sys.stderr)
            polled = min(answers, POLLS_INSTEAD)
            snapshot(client, polled)
            answers -= polled
            if answers == 0:
                return
            continue
        except (OSError, http.client.HTTPException) as error:
            cause = f"the stream is lost ({error})"
        # Not everyone at once: the server has lost all its clients in the same moment. One that
        # stops has told each client another time.
        wait_s = min(source.retry_s * 2**failures, BACK_OFF_MAX_S) * random.uniform(0.75, 1.25)
        failures = min(failures + 1, 10)
        print(f"{cause}; again in {wait_s:.1f} s", file=sys.stderr, flush=True)
        time.sleep(wait_s)


def prices(client, symbols):
    query = urllib.parse.urlencode({"symbols": ",".join(symbols)})
    answer = client.get(f"/api/portfolio/live-prices?{query}")
    for quote in answer["quotes"]:
        behind = f", {quote['delay_s']} s behind" if "delay_s" in quote else ""
        print(
            f"{quote['symbol']:20} {quote['last_price']:>12} {percent(quote['change_pct']):>14}"
            f"  {quote['as_of']} {quote['source']}{behind}{mark(quote)}"
        )
    for symbol in answer["unavailable"]:
        print(f"{symbol:20} unavailable")


def one_time_code(sim):
    """A `request_token` of broker A's login page, which the simulator stands for."""
    if sim is None:
        return getpass.getpass("request_token from the address that the login ended at: ")
    status, _, document = Client(sim).call("POST", "/sim/control/broker_a/request_token")
    assert status == 200, status
    return document["request_token"]


def sync(client, api_key, api_secret, sim):
    login = {"api_key": api_key, "api_secret": api_secret, "request_token": one_time_code(sim)}
    try:
        synced = client.call("POST", "/api/portfolio/sync", login)[2]
    except Problem as problem:
        # A 401 that begins with broker_ is the broker's word about the credentials in the body.
        hints = {
            "broker_session_invalid": "the code was used before or is too old: log in again",
            "broker_credentials_invalid": "API key or secret are wrong",
        }
        if problem.code not in hints:
            raise
        sys.exit(f"{problem}\n{hints[problem.code]}")
    print(f"synced {synced['holdings_count']} holdings, "
          f"{synced['net_positions_count']} open net positions")


def portfolio(client):
    answer = client.get("/api/portfolio/holdings")
    for held in answer["holdings"]:
        # What is not known is null and never 0: a gift has a value and no cost.
        pnl = "cost unknown" if held["pnl"] is None else f"{held['pnl']:>14}"
        print(f"{held['tradingsymbol']:12} {held['quantity']:>8} {held['current_value']:>14} {pnl}")
    known = [held["pnl"] for held in answer["holdings"] if held["pnl"] is not None]
    summary = answer["summary"]
    print(f"value {summary['total_current_value']}, profit {summary['total_pnl']}"
          f" ({summary['without_cost']} holdings without a cost)")
    # Each row is rounded when it is written, the total once from exact figures: they differ by
    # less than half a paisa a row.
    assert abs(sum(known, Decimal(0)) - summary["total_pnl"]) <= len(known) * Decimal("0.005")
    for point in client.get("/api/portfolio/pnl?days=30")["trend"]:
        print(f"{point['date']} {point['total_pnl']:>14} ({point['source']})")


def journal(client):
    """Writes an entry, changes it only if nobody else has, and lists the latest ones."""
    fields = {
        "traded_on": "2026-11-20", "symbol": "NSE:INFY", "side": "buy",
        "quantity": 10, "price": Decimal("1764.90"), "tags": ["example"],
    }
    entry = client.call("POST", "/api/journal", fields)[2]
    path = f"/api/journal/{entry['id']}"
    _, headers, entry = client.call("GET", path)
    assert entry["price"] == fields["price"], entry
    fields["notes"] = "bought at the open"
    client.call("PUT", path, fields, {"If-Match": headers["ETag"]})
    try:
        client.call("DELETE", path, headers={"If-Match": headers["ETag"]})
        sys.exit("a change of an old state went through")
    except Problem as problem:
        if problem.code != "precondition_failed":
            raise
        print("412: the entry has changed since it was read, so it was not deleted")
    for entry in client.get("/api/journal?limit=10")["entries"]:
        print(f"{entry['traded_on']} {entry['side']} {entry['quantity']} {entry['symbol']}"
              f" at {entry['price']}: {entry['notes']}")


def main():
    parser = argparse.ArgumentParser(description="A client of bhav.")
    parser.add_argument("command", choices=["snapshot", "stream", "prices", "portfolio", "journal"])
    parser.add_argument("url")
    parser.add_argument("symbols", nargs="*", help="for prices: up to 50, as NSE:INFY")
    parser.add_argument("--answers", type=int, default=10, help="for snapshot and stream: how many to read")
    parser.add_argument("--email")
    parser.add_argument("--register", action="store_true", help="make the account if need be")
    parser.add_argument("--api-key", help="for portfolio: sync with this app of broker A first")
    parser.add_argument("--sim", help="for portfolio: where the demo's simulator listens")
    given = parser.parse_args()
    client = Client(given.url)
    if given.command == "snapshot":
        return snapshot(client, given.answers)
    if given.command == "stream":
        return stream(client, given.url, given.answers)
    if given.command == "prices":
        return prices(client, given.symbols)
    # Secrets are no arguments: other users of the machine can read those.
    password = os.environ.get("CLIENT_PASSWORD") or getpass.getpass("password at bhav: ")
    client.login(given.email, password, given.register)
    if given.command == "journal":
        return journal(client)
    if given.api_key:
        secret = os.environ.get("API_SECRET") or getpass.getpass("API secret at broker A: ")
        sync(client, given.api_key, secret, given.sim)
    return portfolio(client)


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(str(problem))
    except OSError as error:
        sys.exit(f"no answer: {error}")
