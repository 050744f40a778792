// The words of the trades ledger cover every code of the service, and what its pages make of answers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { correctionWords } from '../../../web/data/correction.js';
import { byReason, compared, firstYear, hasReport, reportedAccount, sharesOf, yearsOf } from '../../../web/data/gains.js';
import { demoFiles, entryOf, importPath, isAccountName, periodWords, proofOf, symbolOf, withoutSync } from '../../../web/data/ledger.js';
import { notIn } from '../../../web/data/returns.js';
import { agreement } from '../../../web/text/agreement.js';
import { corrections } from '../../../web/text/corrections.js';
import { gains } from '../../../web/text/gains.js';
import { ledger } from '../../../web/text/ledger.js';
import { causes, noRate, otherReasons, reasonOf, reasons } from '../../../web/text/reasons.js';
import { refusedLines } from '../../../web/text/refused-lines.js';
import { trades } from '../../../web/text/trades.js';

const SRC = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'src', 'ledger');

/** The codes of an enum of the service. */
function codesOf(file, name) {
  const text = readFileSync(join(SRC, file), 'utf8');
  const body = text.slice(text.indexOf(`enum ${name} {`)).split('\n    }')[0];
  const codes = [...body.matchAll(/= "([^"]+)"/g)].map(([, code]) => code);
  assert.ok(codes.length > 1, `${name}: ${codes}`);
  return codes;
}

/** Every code has words, and no word is of a code that is gone. */
function expectAll(file, name, words) {
  assert.deepEqual(Object.keys(words).sort(), codesOf(file, name).sort(), name);
}

test('every code of the service has its words', () => {
  expectAll('reasons.rs', 'Reason', reasons);
  expectAll('reasons.rs', 'Cause', causes);
  expectAll('refusals.rs', 'RefusedReason', refusedLines);
  expectAll('file_format.rs', 'FileFormat', ledger.formats);
  expectAll('row.rs', 'Side', ledger.sides);
  expectAll('row.rs', 'Mark', trades.marks);
  expectAll('corrections.rs', 'How', corrections.how);
  expectAll('corrections.rs', 'ClassWord', corrections.class);
  expectAll('corrections.rs', 'Unproved', corrections.what);
  expectAll('corrections.rs', 'Kind', corrections.kinds);
  expectAll('gains.rs', 'GainClass', gains.classes);
  expectAll('gains.rs', 'ChargesKnown', gains.charges);
  expectAll('report_agreement.rs', 'Status', agreement.status);
  expectAll('report_agreement.rs', 'What', agreement.what);
  expectAll('report_agreement.rs', 'Note', agreement.notes);
  expectAll('xirr.rs', 'NoRate', noRate);
  for (const [code, [short, long]] of Object.entries({ ...reasons, ...otherReasons })) {
    assert.ok(short.length > 3 && long.endsWith('.'), code);
    // A sentence of a person, not a word of the program.
    assert.doesNotMatch(short + long, /_|null|undefined/, code);
  }
  assert.equal(reasonOf('a_new_one')[0], 'a new one');
});

const row = (more) => ({
  account: 'a', isin: 'INE009A01021', isins: ['INE009A01021'], symbol: 'INFY', ledger: 5, synced: 5, difference: 0,
  pending: { bought: 0, sold: 0 }, uncovered: 0, conflicts: 0, proved: true, reasons: [], cause: null, mends: [],
  synced_at: '2026-11-19T11:00:00+05:30', ...more,
});

test('the head counts what is held, and is as old as the oldest sync', () => {
  const proof = proofOf([
    row({}),
    row({ symbol: 'GONE', ledger: 0, synced: 0 }),
    row({ symbol: 'OFF', ledger: 0, synced: 3, proved: false, reasons: ['quantity_differs'] }),
    row({ symbol: 'SOLD', ledger: 0, synced: 0, uncovered: 4, proved: false, reasons: ['uncovered'] }),
    row({ account: 'b', symbol: 'TWO', synced_at: '2026-11-18T15:00:00+05:30', conflicts: 1, proved: false, simulated: true }),
  ]);
  assert.deepEqual([proof.proved, proof.all, proof.open.length], [1, 4, 3]);
  assert.equal(proof.at, '2026-11-18T15:00:00+05:30');
  assert.equal(proof.simulated, true);
  assert.deepEqual(proof.conflicts.map(({ symbol }) => symbol), ['TWO']);
  assert.deepEqual([proofOf([]).all, proofOf([]).at], [0, null]);
});

test('an account that was never synced is one card, and what differs besides has its own', () => {
  const never = { account: 'family', proved: false, synced: null, difference: null, synced_at: null };
  const { accounts, rest } = withoutSync([
    row({ ...never, reasons: ['never_synced'] }),
    row({ ...never, symbol: 'TCS', reasons: ['never_synced'] }),
    row({ ...never, symbol: 'ITC', reasons: ['never_synced', 'uncovered'] }),
  ]);
  assert.deepEqual(accounts, [{ name: 'family', shares: 2 }]);
  assert.deepEqual(rest.map(({ symbol }) => symbol), ['ITC']);
});

test('periods, names and addresses', () => {
  assert.equal(periodWords({ from: '2024-04-01', to: '2025-03-31' }), '1 Apr 2024 to 31 Mar 2025');
  assert.equal(periodWords({ from: '2024-04-01', to: '2024-04-01' }), '1 Apr 2024');
  assert.equal(periodWords({ from: null, to: '2025-03-31' }), 'up to 31 Mar 2025');
  assert.equal(periodWords(null), '–');
  assert.equal(importPath('a', { from: null, to: '2025-03-31' }), '/trades?account=a&to=2025-03-31');
  assert.deepEqual(['a', 'family-2', 'A', '', 'x'.repeat(41)].map(isAccountName), [true, true, false, false, false]);
});

test('the demo has files, and real brokers have none here', () => {
  const accounts = [
    { name: 'a', person: 'self', client_ids: [{ kind: 'broker_a_user', id: 'SA0001' }], last_sync: null, proved: false },
    { name: 'b', person: 'self', client_ids: [], last_sync: null, proved: false },
  ];
  const pages = { a: 'http://127.0.0.2:8081/a/connect/login?v=3&api_key=', b: 'http://127.0.0.2:8081/b/apiuser/login?api_key=' };
  const files = demoFiles(pages, accounts);
  assert.equal(files[0].href, 'http://127.0.0.2:8081/files/a/SA0001/tradebook.csv');
  assert.ok(files.length === 4 && files.every(({ account }) => account === 'a'));
  // A file of broker B adds the number of an account, by which the simulator has none.
  const ids = [{ kind: 'broker_b_account', id: '8500000001' }, { kind: 'broker_b_user', id: 'SB000001' }];
  const both = demoFiles(pages, [accounts[0], { ...accounts[1], client_ids: ids }]);
  assert.deepEqual([both.length, both[4].href], [7, 'http://127.0.0.2:8081/files/b/SB000001/all-transactions.csv']);
  assert.deepEqual(demoFiles({ a: 'https://kite.example/connect/login', b: '' }, accounts), []);
  assert.deepEqual(demoFiles(null, accounts), []);
});

const trade = (more) => ({
  id: '1', account: 'a', date: '2024-08-21', time: null, symbol: 'RELIANCE', isin: 'INE002A01018', exchange: 'NSE',
  segment: 'EQ', series: null, side: 'sell', quantity: 9, price: 3012.6, product: null, auction: false, trade_id: null,
  order_id: null, charges: { brokerage: 20, stt: null, stamp_duty: null, other: null }, mark: null,
  sources: [{ import_id: 1, format: 'zerodha_tradebook', line: 4 }], ...more,
});

test('a trade leads to its symbol where its file has the exchange’s, and begins an entry', () => {
  assert.equal(symbolOf(trade({})), 'NSE:RELIANCE');
  assert.equal(symbolOf(trade({ symbol: 'RELIND', sources: [{ import_id: 1, format: 'icici_tradebook', line: 4 }] })), null);
  assert.equal(symbolOf(trade({ segment: 'FO' })), null);
  assert.deepEqual(entryOf(trade({})), { traded_on: '2024-08-21', symbol: 'NSE:RELIANCE', side: 'sell', quantity: '9', price: '3012.6', fees: '20' });
  assert.equal(entryOf(trade({ charges: { brokerage: 20, stt: 3, stamp_duty: null, other: null } })).fees, '');
});

test('what is left out is grouped by its reason, that of most shares first', () => {
  const out = (isin, reason) => ({ account: 'a', isin, symbol: isin, reason, quantity: 1, proceeds: 1, ignored_loss: null });
  const rows = [out('A', 'uncovered'), out('A', 'quantity_differs'), out('B', 'quantity_differs'), out('B', 'quantity_differs')];
  assert.deepEqual(byReason(rows).map(({ reason, shares }) => [reason, shares]), [['quantity_differs', 2], ['uncovered', 1]]);
  assert.equal(sharesOf(rows), 2);
});

test('the year that is shown at first has something in it', () => {
  assert.equal(firstYear({ fy: '2026-27', years: ['2024-25', '2025-26'] }), '2025-26');
  assert.equal(firstYear({ fy: '2025-26', years: ['2024-25', '2025-26'] }), '2025-26');
  assert.equal(firstYear({ fy: '2026-27', years: [] }), '2026-27');
  assert.deepEqual(yearsOf({ fy: '', years: ['2024-25', '2025-26'] }, '2026-27'), ['2026-27', '2025-26', '2024-25']);
  assert.equal(hasReport({ agreed: 0, differs: 0, only_report: 0 }), false);
  const line = (account, report) => ({ account, report });
  assert.equal(reportedAccount([line('a', {}), line('b', null)]), 'a');
  assert.equal(reportedAccount([line('a', {}), line('b', {})]), null);
  assert.equal(reportedAccount([line('a', {})]), null);
  assert.deepEqual(compared([{ status: 'agreed' }, { status: 'differs' }]).open, [{ status: 'differs' }]);
});

test('a correction is one line of words', () => {
  const bonus = { kind: 'bonus', isin: 'INE101A01026', ex_date: '2025-02-07', numerator: 1, denominator: 1 };
  assert.equal(correctionWords(bonus, null), 'Bonus: 1 for 1 of INE101A01026, 7 Feb 2025');
  assert.equal(correctionWords(bonus, 'M&M'), 'Bonus: 1 for 1 of M&M, 7 Feb 2025');
  const lot = { kind: 'opening_lot', account: 'a', isin: 'INE019A01038', date: null, quantity: 20, cost: null };
  assert.equal(correctionWords(lot, 'JSWSTEEL'), 'Purchase without a trade: 20 of JSWSTEEL');
  const split = { kind: 'split', isin: 'INE423A01024', ex_date: '2025-02-07', numerator: 2, denominator: 1, new_isin: 'INE423A01925' };
  assert.equal(correctionWords(split, null), 'Split: 2 for 1 of INE423A01024, to INE423A01925, 7 Feb 2025');
});

test('a return names the shares that are not in it by their reasons, and what is in none', () => {
  const out = (symbol, reason) => ({ account: symbol && 'a', isin: symbol && `IN${symbol}`, symbol, reason });
  const { shares, groups, besides } = notIn([out('A', 'uncovered'), out('B', 'uncovered'), out('A', 'conflict'), out(null, 'dividends')]);
  assert.equal(shares, 2);
  assert.deepEqual(groups, [{ reason: 'uncovered', names: ['A', 'B'] }, { reason: 'conflict', names: ['A'] }]);
  assert.deepEqual(besides, ['dividends']);
});
