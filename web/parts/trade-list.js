// All trades: filtered, by pages, with the choice where two files disagree.
import { call, withQuery } from '../data/api.js';
import { begin } from '../data/begun-entry.js';
import { UNKNOWN, day, isKnown, price, quantity, rupees } from '../data/format.js';
import { entryOf, symbolOf } from '../data/ledger.js';
import { symbolOfIsin } from '../data/names.js';
import { ledger } from '../text/ledger.js';
import { trades as t } from '../text/trades.js';
import { figure, known, secret } from './figures.js';
import { companyOf } from './share-name.js';
import { table } from './table.js';
import { attr, button, h, pathOf, put, say } from './view.js';

/** @typedef {Answer<'/api/trades'>['trades'][number]} Trade */
/** @typedef {import('./import-list.js').Acts & {
 *   go: (path: string) => void,
 *   filter: (name: string, value: string) => void,
 *   older: () => void,
 * }} Acts */

const FILTERS = /** @type {const} */ (['symbol', 'account', 'side', 'from', 'to']);

/** @param {Acts} act */
export function tradeList(act) {
  const shown = table(shapeOf(act));
  const older = button(t.older, act.older, { hidden: true });
  const csv = h('a', { class: 'button quiet', download: '' }, t.csv);
  const none = h('p', { class: 'empty', hidden: true });
  const inputs = FILTERS.map((name) => filterOf(name, act.filter));
  const node = h(
    'section',
    { 'aria-labelledby': 'trades' },
    h('h2', { id: 'trades' }, t.list),
    h(
      'form',
      { class: 'filters by no-print', onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      inputs.map((input, at) => h('div', null, h('label', { for: input.id }, t.by[FILTERS[at]]), input)),
      csv,
    ),
    none,
    shown.node,
    h('p', null, older),
  );
  return {
    node,
    /** Sets a filter that was chosen elsewhere. @param {string} name @param {string} value */
    choose(name, value) {
      const input = inputs.find((one) => one.name === name);
      if (input) input.value = value;
    },
    /** @param {{ trades: Trade[], cursor: string | null, chosen: { [filter: string]: string }, accounts: { name: string }[] }} state */
    update({ trades, cursor, chosen, accounts }) {
      drawAccounts(inputs[1], accounts);
      shown.update(trades);
      none.hidden = trades.length > 0;
      say(none, Object.values(chosen).some(Boolean) ? t.none : t.noneYet);
      shown.node.hidden = trades.length === 0;
      older.hidden = cursor === null;
      attr(csv, 'href', withQuery('/api/trades.csv', chosen));
    },
  };
}

/** @param {typeof FILTERS[number]} name @param {(name: string, value: string) => void} filter */
function filterOf(name, filter) {
  const id = `by-${name}`;
  const isDate = name === 'from' || name === 'to';
  const options = name === 'side' ? Object.entries(ledger.sides) : [];
  const input =
    name === 'side' || name === 'account'
      ? h('select', { id, name }, h('option', { value: '' }, t.all), options.map(([value, label]) => h('option', { value }, label)))
      : h('input', { id, name, type: isDate ? 'date' : 'search', autocomplete: 'off', spellcheck: 'false' });
  input.addEventListener('change', () => filter(name, input.value.trim()));
  return input;
}

/** @param {HTMLSelectElement} select @param {{ name: string }[]} accounts */
function drawAccounts(select, accounts) {
  const names = accounts.map(({ name }) => name);
  if (select.dataset.names === names.join()) return;
  select.dataset.names = names.join();
  const { value } = select;
  put(
    select,
    h('option', { value: '' }, t.all),
    names.map((name) => h('option', { value: name }, ledger.account(name))),
  );
  select.value = names.includes(value) ? value : '';
}

/** Its symbol, also where the file has the broker's own code. @param {Trade} trade */
const listedOf = (trade) => symbolOf(trade) ?? (trade.segment === 'EQ' ? symbolOfIsin(trade.isin) : null);

/** @param {string} side */
const sideOf = (side) => ledger.sides[/** @type {'buy' | 'sell'} */ (side)] ?? side;

/** @param {Trade} trade */
function whatOf(trade) {
  if (!isKnown(trade.quantity)) return t.disagreeing(sideOf(trade.side));
  return t.whatOf(sideOf(trade.side), secret(quantity)(trade.quantity), secret(price)(trade.price));
}

/** What must be known of a trade, in words. @param {Trade} trade @returns {Bit[]} */
function marksOf({ mark }) {
  const [words, why] = t.marks[/** @type {keyof typeof t.marks} */ (mark)] ?? [];
  return words ? [' ', { text: words, kind: 'mark delayed', why }] : [];
}

/** @param {Trade} trade @returns {Bit} */
function chargesOf({ charges }) {
  const money = secret(rupees);
  const told = Object.entries(charges).filter(([, value]) => isKnown(value));
  const words = t.chargesOf(Object.fromEntries(told.map(([name, value]) => [name, money(value)])));
  return words || { text: UNKNOWN, why: t.noCharges };
}

/** @param {Trade} trade */
const sourceOf = ({ sources }) =>
  sources
    .map(({ format, line }) => t.line(ledger.formats[/** @type {keyof typeof ledger.formats} */ (format)] ?? format, line))
    .join('; ');

/** @param {Acts} act @returns {Shape<Trade>} */
function shapeOf(act) {
  /** @type {(format: (value: any) => string) => (value: number | null) => Bit} */
  const missing = (format) => (value) => known(value, format, t.disagree);
  return {
    name: 'trades',
    caption: t.caption,
    isFixed: true,
    key: (trade) => `${trade.id} ${trade.mark === 'conflict'}`,
    label: (trade) => `${trade.symbol}, ${day(trade.date)}`,
    columns: [
      { key: 'date', label: t.date, at: 'c', show: (trade) => day(trade.date) },
      {
        key: 'symbol',
        label: t.symbol,
        at: 'a',
        show: (trade) => {
          const symbol = listedOf(trade);
          const company = companyOf(trade);
          return [
            { text: trade.symbol, kind: 'symbol', href: symbol ? pathOf(symbol) : undefined },
            ...marksOf(trade),
            ...(company ? [' ', { text: company, kind: 'company' }] : []),
          ];
        },
      },
      { key: 'what', label: t.what, phone: true, at: 'b', show: whatOf },
      { key: 'side', label: t.side, at: 'told', show: (trade) => sideOf(trade.side) },
      figure('quantity', t.quantity, missing(secret(quantity)), { at: 'told' }),
      figure('price', t.price, missing(secret(price)), { at: 'told' }),
      { key: 'account', label: t.account, at: 'd', show: (trade) => ledger.short(trade.account) },
      {
        key: 'time',
        label: t.time,
        rank: 2,
        show: (trade) => [trade.time ?? UNKNOWN, trade.auction ? ` ${t.auction}` : ''].join(''),
      },
      { key: 'exchange', label: t.exchange, rank: 3, show: (trade) => `${trade.exchange} ${trade.segment}` },
      { key: 'charges', label: t.charges, rank: 3, wide: true, show: chargesOf },
      { key: 'source', label: t.source, rank: 3, wide: true, show: sourceOf },
      { key: 'acts', label: '', control: (current) => actsOf(current, act) },
    ],
  };
}

/** @param {() => Trade} current @param {Acts} act */
function actsOf(current, act) {
  const trade = current();
  const write = () => {
    begin(entryOf(current(), listedOf(current())));
    act.go('/journal');
  };
  if (trade.mark !== 'conflict')
    return button(t.journal, write, {
      class: 'quiet',
      'aria-label': t.journalThis(trade.symbol, day(trade.date)),
    });
  return h(
    'span',
    { class: 'row-actions' },
    /** @type {const} */ (['first', 'second']).map((which) => {
      const its = trade[which];
      const label = its ? t.keep(secret(quantity)(its.quantity), secret(price)(its.price)) : which;
      return button(label, () => keep(trade.id, which, act), { class: 'quiet' });
    }),
  );
}

/** @param {string} id @param {'first' | 'second'} which @param {Acts} act */
async function keep(id, which, act) {
  await call(`/api/trades/conflicts/${id}`, { method: 'PUT', body: { keep: which } }).then(act.changed, (failed) =>
    act.tell(failed.message),
  );
}
