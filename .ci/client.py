"""Calls a running demo through the client that was made of its document: `.ci/clients`."""

import datetime
import sys
from http import HTTPStatus
from typing import TypeVar

import httpx
from bhav_client import AuthenticatedClient, Client
from bhav_client.api.account import erase_account, register
from bhav_client.api.journal import add_entry, delete_entry, list_journal, read_entry, replace_entry
from bhav_client.api.market import read_quotes, read_snapshot
from bhav_client.api.portfolio import read_holdings, read_pnl, sync_broker_a, sync_broker_b
from bhav_client.api.system import read_document
from bhav_client.api.tokens import read_broker_a_status
from bhav_client.models import (
    AccountErased,
    BrokerALogin,
    BrokerAStatus,
    BrokerBLogin,
    Document,
    Holdings,
    JournalEntry,
    JournalFields,
    JournalFieldsSide,
    JournalPage,
    LoggedIn,
    PasswordProof,
    Pnl,
    Problem,
    Quotes,
    Registration,
    Snapshot,
    SyncedBrokerA,
    SyncedBrokerB,
)

PASSWORD = "nine green parrots"
T = TypeVar("T")


def expect(kind: type[T], answer: object) -> T:
    """The answer, if it is of this type."""
    assert isinstance(answer, kind), f"{kind.__name__} expected: {answer}"
    return answer


def code(sim: str, name: str) -> str:
    """A one-time code of a broker's login page."""
    return str(httpx.post(f"{sim}/sim/control/{name}").json()[name.split("/")[1]])


def market(base: str) -> None:
    client = Client(base_url=base)
    snapshot = expect(Snapshot, read_snapshot.sync(client=client))
    assert snapshot.index1_price > 0 and snapshot.market.simulated is True
    for _ in range(20):  # It may be renewed in between.
        etag = read_snapshot.sync_detailed(client=client).headers["ETag"]
        again = read_snapshot.sync_detailed(client=client, if_none_match=etag)
        if again.status_code == HTTPStatus.NOT_MODIFIED:
            break
    assert again.status_code == HTTPStatus.NOT_MODIFIED
    quotes = expect(Quotes, read_quotes.sync(client=client, symbols=["NSE:M&M", "NSE:NOSUCH"]))
    assert [quote.symbol for quote in quotes.quotes] == ["NSE:M&M"]
    assert quotes.unavailable == ["NSE:NOSUCH"]
    refused = expect(Problem, read_quotes.sync(client=client, symbols=["nonsense"]))
    assert (refused.status, refused.code) == (400, "symbol_malformed")
    assert expect(BrokerAStatus, read_broker_a_status.sync(client=client)).valid
    assert expect(Document, read_document.sync(client=client)).openapi.startswith("3.1.")


def portfolio(client: AuthenticatedClient, sim: str) -> None:
    login_a = BrokerALogin("simkeya-1", "simsecreta", code(sim, "broker_a/request_token"))
    synced_a = expect(SyncedBrokerA, sync_broker_a.sync(client=client, body=login_a))
    assert synced_a.net_positions_count > 0 and synced_a.reconciliation.our_pnl is not None
    login_b = BrokerBLogin("sim+key=b&1-1", "simsecretb", code(sim, "broker_b/api_session"))
    synced_b = expect(SyncedBrokerB, sync_broker_b.sync(client=client, body=login_b))
    assert synced_b.positions_count >= 0
    holdings = expect(Holdings, read_holdings.sync(client=client, live=True))
    assert len(holdings.holdings) == synced_a.holdings_count + synced_b.holdings_count
    pnl = expect(Pnl, read_pnl.sync(client=client, days=7))
    assert pnl.days == 7 and len(pnl.trend) == 1


def journal(client: AuthenticatedClient) -> None:
    day = datetime.date(2026, 11, 20)
    fields = JournalFields(day, "NSE:INFY", JournalFieldsSide.BUY, 10, 1764.9, tags=["one"])
    entry = expect(JournalEntry, add_entry.sync(client=client, body=fields))
    assert (entry.price, entry.tags, entry.fees) == (1764.9, ["one"], None)
    etag = read_entry.sync_detailed(entry.id, client=client).headers["ETag"]
    fields.quantity = 11
    changed = replace_entry.sync(entry.id, client=client, body=fields, if_match=etag)
    assert expect(JournalEntry, changed).quantity == 11
    late = expect(Problem, delete_entry.sync(entry.id, client=client, if_match=etag))
    assert (late.status, late.code) == (412, "precondition_failed")
    page = expect(JournalPage, list_journal.sync(client=client, limit=1))
    assert [entry.id for entry in page.entries] == [entry.id] and page.next_cursor is None


def main(base: str, sim: str) -> None:
    market(base)
    person = Registration("python@example.com", PASSWORD)
    session = expect(LoggedIn, register.sync(client=Client(base_url=base), body=person))
    # Without a token in the answer it would be in a cookie, as nobody asked.
    assert isinstance(session.access_token, str)
    client = AuthenticatedClient(base_url=base, token=session.access_token)
    portfolio(client, sim)
    journal(client)
    erased = expect(AccountErased, erase_account.sync(client=client, body=PasswordProof(PASSWORD)))
    assert erased.deleted.journal_entries == 1


main(sys.argv[1], sys.argv[2])
