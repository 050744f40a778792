// What a row of holdings is made of, at which broker. It comes when a row is opened.
import { serverNow } from '../data/api.js';
import { moments, price, quantity, rupees, signedRupees } from '../data/format.js';
import { text } from '../text.js';
import { holdingParts as own } from '../text/holding-parts.js';
import { portfolio as t } from '../text/portfolio.js';
import { secret } from './figures.js';
import { both, quantities } from './holdings.js';
import { h, pieces } from './view.js';

/** @param {HoldingRow} row */
export function partsOf(row) {
  return h(
    'ul',
    { class: 'parts' },
    row.parts.map((part) =>
      h(
        'li',
        null,
        h('b', null, t.broker[part.broker]),
        h('span', null, `${part.exchange}:${part.tradingsymbol}`),
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
