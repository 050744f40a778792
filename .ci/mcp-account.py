"""Makes an account with a portfolio and a journal in a running demo, and prints a key: `.ci/mcp`."""

import json
import sys
import urllib.request
from typing import Any

PASSWORD = "nine green parrots"
SCOPES = ["market:read", "portfolio:read", "journal:read", "signals:read", "trades:read"]


def post(url: str, body: object, token: str = "") -> Any:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def code(sim: str, name: str) -> str:
    """A one-time code of a broker's login page."""
    return str(post(f"{sim}/sim/control/{name}", {})[name.split("/")[1]])


def main(base: str, sim: str) -> None:
    person = {"email": "mcp@example.com", "password": PASSWORD}
    token = post(f"{base}/api/auth/register", person)["access_token"]
    login_a = {"api_key": "simkeya-3", "api_secret": "simsecreta"}
    login_a["request_token"] = code(sim, "broker_a/request_token")
    post(f"{base}/api/portfolio/sync", login_a, token)
    login_b = {"api_key": "sim+key=b&1-3", "api_secret": "simsecretb"}
    login_b["api_session"] = code(sim, "broker_b/api_session")
    post(f"{base}/api/portfolio/brokerb-sync", login_b, token)
    for number in range(30):
        entry = {"traded_on": "2026-11-20", "symbol": "NSE:INFY", "side": "buy", "quantity": 1}
        entry |= {"price": 1764.9, "notes": f"{number} " + "why " * 900}
        post(f"{base}/api/journal", entry, token)
    order = {"name": "an assistant", "scopes": SCOPES, "current_password": PASSWORD}
    print(post(f"{base}/api/keys", order, token)["key"])


main(sys.argv[1], sys.argv[2])
