// What a row of holdings is made of, at which broker. It comes when a row is opened.
import { serverNow } from '../data/api.js';
import { called, moments, price, quantity, rupees, signedRupees } from '../data/format.js';
import { text } from '../text.js';
import { holdingParts as own } from '../text/holding-parts.js';
import { portfolio as t } from '../text/portfolio.js';
import { secret } from './figures.js';
import { both, quantities } from './holdings.js';
import { knownLots, lotHeading, lotList, readLots } from './lot-list.js';
import { h, pieces, put, say, skeleton } from './view.js';

/** What is at which broker, and the lots that the trades tell of. @param {HoldingRow} row */
export const partsOf = (row) => h('div', null, brokersOf(row), row.isin ? lotsOf(row, row.isin) : null);

/** @param {HoldingRow} row @param {string} isin */
function lotsOf(row, isin) {
  const box = h('div', { class: 'lots' });
  const account = row.parts.length === 1 ? row.parts[0].broker : null;
  /** @param {import('./lot-list.js').Lot[]} lots */
  const draw = (lots) => put(box, lotHeading(lots), lotList(lots));
  const before = knownLots(isin, account);
  if (before) draw(before);
  else put(box, lotHeading([]), skeleton(2));
  readLots(isin, account).then(draw, ({ message }) => say(box, message));
  return box;
}

/** @param {HoldingRow} row */
function brokersOf(row) {
  return h(
    'ul',
    { class: 'parts' },
    row.parts.map((part) =>
      h(
        'li',
        null,
        h('b', null, t.broker[part.broker]),
        h('span', null, called(`${part.exchange}:${part.tradingsymbol}`)),
        h('span', null, t.quantity, ' ', pieces(quantities({ ...part, parts: [part] }))),
        h('span', null, `${t.average} ${secret(price)(part.average_price)}`),
        h(
          'span',
          null,
          `${t.last} ${price(part.last_price)}`,
          part.source && ` (${text.source[part.source] ?? part.source})`,
          part.as_of && `, ${moments(part.as_of, serverNow())}`,
        ),
        h('span', null, `${t.value} ${secret(rupees)(part.current_value)}`),
        h('span', null, `${t.today} `, pieces(both(part.day_pnl, part.day_change_pct, t.noClose))),
        part.known_cost &&
          h('span', null, own.knownCost(quantity(part.known_cost.quantity), secret(rupees)(part.known_cost.cost))),
        part.broker_pnl !== null &&
          part.broker_pnl !== part.pnl &&
          h('span', null, own.brokerSays(secret(signedRupees)(part.broker_pnl))),
      ),
    ),
  );
}
