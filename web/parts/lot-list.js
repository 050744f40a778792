// Open lots of a share: when each was bought, what it cost, and how long it is until it is long-term.
import { call, withQuery } from '../data/api.js';
import { day, quantity, rupees, signedRupees } from '../data/format.js';
import { corrections } from '../text/corrections.js';
import { ledger } from '../text/ledger.js';
import { lots as t } from '../text/lots.js';
import { known, moved, secret, simulated } from './figures.js';
import { h, pieces } from './view.js';

/** @typedef {Answer<'/api/trades/lots'>['lots'][number]} Lot */

/** How long an answer is taken for that of now: a row is drawn anew with each price. */
const KEPT_MS = 60_000;
const LOTS = 200;
/** @type {Map<string, { at: number, answer: Promise<Lot[]>, lots: Lot[] | null }>} */
const kept = new Map();

/**
 * The lots of a share, at one account or at all.
 * @param {string} isin
 * @param {string | null} account
 */
export function readLots(isin, account) {
  const name = `${isin} ${account}`;
  const before = kept.get(name);
  if (before && performance.now() - before.at < KEPT_MS) return before.answer;
  const answer = call(withQuery('/api/trades/lots', { isin, account, limit: LOTS })).then(({ lots }) => lots);
  const its = { at: performance.now(), answer, lots: before?.lots ?? null };
  kept.set(name, its);
  answer.then(
    (lots) => {
      its.lots = lots;
    },
    () => kept.delete(name),
  );
  return answer;
}

/** The lots as they were last read: what is drawn anew with each price stands there at once. @param {string} isin @param {string | null} account */
export const knownLots = (isin, account) => kept.get(`${isin} ${account}`)?.lots ?? null;

/** Whether it is long-term, or when it will be, in words. @param {Lot} lot */
const termOf = ({ term, days_to_long: days, long_from: from }) => (term === 'long' ? t.long : t.turns(days, day(from)));

/** The heading of a share's lots. @param {Lot[]} lots */
export const lotHeading = (lots) => h('h3', null, t.title, ' ', simulated(lots.some((lot) => lot.simulated)));

/** @param {Lot[]} lots */
export function lotList(lots) {
  if (lots.length === 0) return h('p', { class: 'small' }, t.none, ' ', h('a', { href: '/trades' }, t.bring));
  return h(
    'ul',
    { class: 'parts', 'aria-label': t.caption },
    lots.map((lot) =>
      h(
        'li',
        null,
        h('b', null, `${t.bought} ${day(lot.acquired_on)}`, lot.how !== 'market' && `, ${corrections.how[lot.how] ?? lot.how}`),
        h('span', null, ledger.short(lot.account)),
        h('span', null, ledger.shares(secret(quantity)(lot.quantity))),
        h('span', null, `${t.cost} `, pieces([known(lot.cost, secret(rupees), t.noCost)])),
        h('span', null, `${t.gain} `, pieces([moved(lot.unrealised, secret(signedRupees), t.noPrice)])),
        h('span', null, termOf(lot)),
      ),
    ),
  );
}
