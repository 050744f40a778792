// What the pages of the trades ledger make of its answers: counts, periods, addresses. Pure; no money is computed.
import { day, isKnown } from './format.js';

/** @typedef {Answer<'/api/trades/reconciliation'>['rows'][number]} Proof */
/** @typedef {Answer<'/api/trades/accounts'>['accounts'][number]} Account */
/** @typedef {{ from?: string | null, to?: string | null } | null | undefined} Period */

/** Whether a share is held by either side, or does not fit: what is gone on both sides is no holding. @param {Proof} row */
const isHeld = (row) => !row.proved || row.ledger !== 0 || (row.synced ?? 0) !== 0;

/**
 * What the head of the ledger says.
 * @param {Proof[]} rows
 */
export function proofOf(rows) {
  const held = rows.filter(isHeld);
  const times = rows.map((row) => row.synced_at).filter((at) => typeof at === 'string');
  return {
    all: held.length,
    proved: held.filter((row) => row.proved).length,
    open: held.filter((row) => !row.proved),
    /** The oldest of the syncs: as of then all of it holds. */
    at: times.sort()[0] ?? null,
    simulated: rows.some((row) => row.simulated),
    conflicts: held.filter((row) => row.conflicts > 0),
  };
}

/**
 * Of what does not fit, the accounts of which no broker has said anything; a card for each of their shares would tell
 * the same of all.
 * @param {Proof[]} open
 */
export function withoutSync(open) {
  const isAlone = (/** @type {Proof} */ row) => row.reasons.length === 1 && row.reasons[0] === 'never_synced';
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { account } of open.filter(isAlone)) counts.set(account, (counts.get(account) ?? 0) + 1);
  return {
    accounts: [...counts].map(([name, shares]) => ({ name, shares })),
    rest: open.filter((row) => !isAlone(row)),
  };
}

/** @param {Period} period */
export function periodWords(period) {
  const { from, to } = period ?? {};
  if (from && to) return from === to ? day(from) : `${day(from)} to ${day(to)}`;
  if (to) return `up to ${day(to)}`;
  return from ? `from ${day(from)}` : '–';
}

/** Where the file of an account and a period is dropped. @param {string} account @param {Period} period */
export function importPath(account, period) {
  const given = [
    ['account', account],
    ['from', period?.from],
    ['to', period?.to],
  ].filter(([, value]) => value);
  return `/trades?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`;
}

/** A name that an account may have. @param {string} name */
export const isAccountName = (name) => /^[a-z0-9_-]{1,40}$/.test(name);

/**
 * The files that the simulated brokers of a demo have for a person; nothing where the brokers are real ones.
 * A broker's own login is behind TLS, the simulator's is not.
 * @param {{ a: string, b: string } | null} loginPages
 * @param {Account[]} accounts
 */
export function demoFiles(loginPages, accounts) {
  if (!loginPages?.a.startsWith('http:')) return [];
  const { origin } = new URL(loginPages.a);
  const files = {
    a: ['tradebook.csv', 'tradebook-middle-year.csv', 'tradebook.xlsx', 'taxpnl-2024-25.zip'],
    b: ['all-transactions.csv', 'all-transactions-middle-year.csv', 'capital-gains-2024-25.xls'],
  };
  const kinds = { a: 'broker_a_user', b: 'broker_b_user' };
  return /** @type {const} */ (['a', 'b']).flatMap((which) => {
    const ids = accounts.find(({ name }) => name === which)?.client_ids ?? [];
    const id = ids.find(({ kind }) => kind === kinds[which])?.id;
    if (!id) return [];
    return files[which].map((name) => ({ account: which, name, href: `${origin}/files/${which}/${id}/${name}` }));
  });
}

/**
 * The exchange's symbol of a trade, where its file has that one: broker B's files have its own codes.
 * @param {{ symbol: string, exchange: string, segment: string, sources: { format: string }[] }} trade
 */
export function symbolOf({ symbol, exchange, segment, sources }) {
  const isOwnCode = sources.length > 0 && sources.every(({ format }) => /^(icici|sync_b)/.test(format));
  const isListed = segment === 'EQ' && /^[A-Z0-9&._-]{1,32}$/.test(symbol);
  return isListed && !isOwnCode ? `${exchange}:${symbol}` : null;
}

/**
 * What a journal's form is filled with from a trade.
 * @param {Answer<'/api/trades'>['trades'][number]} trade
 * @param {string | null} symbol
 */
export function entryOf(trade, symbol = symbolOf(trade)) {
  const { brokerage, stamp_duty: duty, stt, other } = trade.charges;
  const charges = [brokerage, duty, stt, other].filter(isKnown);
  return {
    traded_on: trade.date,
    symbol: symbol ?? trade.symbol,
    side: trade.side,
    quantity: String(trade.quantity ?? ''),
    price: String(trade.price ?? ''),
    // One charge is the fee; several would have to be added, which is the person's to say.
    fees: charges.length === 1 ? String(charges[0]) : '',
  };
}
